// Reporter: writes status.report of its own Trial, and takes directives from the answers.
//
// A separate thread sends, by server-side apply as manager fettle-trainer; the newest report wins,
// so that nothing ever queues up. The reporter owns the whole of status.report, so it first reads,
// with a patch that changes nothing, the report of earlier runs, and continues from that: a trainer
// may patch its Trial's status but do nothing else, not even read it. Any failure, be it a 403
// because the operator has not recorded this pod yet or no answer at all, is retried (pace.h) and
// never affects the training.
//
// submit(), stop_wanted() and finish() are called by the training's thread and, except for
// finish(), never wait for the network.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "api/trial/report.h"
#include "kube/client/client.h"
#include "trainer/reporter/pace.h"

namespace fettle::trainer {

struct ReporterSettings {
  kube::ObjectKey trial;
  api::CurveNeeds needs;  // content of the curve; its rungs are reported at once
  std::int64_t interval_ms = kShortestIntervalMs;
  std::int64_t longest_interval_ms = kLongestIntervalMs;
  std::function<void(const std::string&)> log;  // from the reporter's thread
};

// Directives of the Trial's spec to its run.
struct TrialDirectives {
  bool stop = false;     // end here: early stopping, the goal, the budget
  bool suspend = false;  // end here, and resume later
  std::int64_t until_step = 0;
  std::int64_t workers = 0;
  bool operator==(const TrialDirectives&) const = default;
};

// Lenient, since operator and trainer may be of different versions.
TrialDirectives read_directives(const Json& trial);

class Reporter {
 public:
  // `client` outlives the reporter.
  Reporter(kube::Client& client, ReporterSettings settings);
  // Waits for the call under way; undelivered reports are lost.
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void submit(api::ReportLine line);
  bool stop_wanted() const { return stop_wanted_; }
  // Notes the HTTP status of an answer of the API server. From any thread.
  void note_answer(int status) {
    if (status == 429) throttled_ = true;
  }

  // Sends the pending report at once, and waits until it is delivered or `most` has passed. Returns
  // whether it was delivered.
  bool finish(std::chrono::milliseconds most);

 private:
  void work();
  // Returns the next report when it is due; absent once the reporter ends.
  std::optional<api::Report> wait_for_report();
  Status send(const api::Report& report);
  Status read_earlier();
  void heed(const Json& trial);
  void note_result(const Status& status);

  kube::Client& client_;
  const ReporterSettings settings_;

  // Used by the reporter's thread alone.
  bool read_ = false;                   // `earlier_` is known
  std::optional<api::Report> earlier_;  // of the trial's earlier runs
  std::optional<TrialDirectives> directives_;
  std::string last_trouble_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Pace pace_;
  api::Report report_;  // of this run
  bool delivered_ = true;
  bool ending_ = false;

  std::atomic<bool> stop_wanted_{false};
  std::atomic<bool> throttled_{false};  // during the attempt under way
  std::thread thread_;
};

}  // namespace fettle::trainer
