// LogMetrics: the reports of trials whose image has no reporter, read off their logs.
//
// Logs are polled: a few readers fetch a piece of one log after another (log_cursor.h), in turns
// that are fair to all (log_turns.h), so any number of pods can be read. A pod that runs is read
// again after kLeastPauseMs, less often the longer it has said nothing new; one that has ended is
// read to its end, once. After a restart logs are read from their beginning: nothing is remembered
// that could not be read again. Kept of a pod are how far it was read and one report.
//
// A report is published when its log was read to the end for the first time, so that a log that is
// read again never takes a trial back; then at rungs and at the end at once, otherwise at most
// every kPublishMs, because every change is a write to the API server.
// Thread-safe; `changed` is called from the readers and must return quickly. They end in stop().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/clock.h"
#include "kube/client.h"
#include "runtime/kubernetes/log_turns.h"
#include "runtime/metric_lines.h"

namespace fettle::kubernetes {

// The log of a pod that has just begun to run is left alone for so long: of a short run, only the
// whole log is read.
inline constexpr std::int64_t kFirstPauseMs = 500;
inline constexpr std::int64_t kLeastPauseMs = 2'000;
inline constexpr std::int64_t kMostPauseMs = 15'000;
inline constexpr std::int64_t kPublishMs = 5'000;
// How often a log is tried before its trial continues without it, or people are told.
inline constexpr int kMostLogTries = 6;
// Pods that were read to their end and whose reports are remembered.
inline constexpr std::size_t kMostLogs = 4'096;

// Which log, and what to look for in it.
struct LogSource {
  kube::ObjectKey pod;
  std::string uid;
  std::string container;
  std::string trial;  // what `changed` is called with
  std::string study;  // whose turn it is
  runtime::MetricLinesOptions metrics;
};

// What is known of a pod's log.
struct LogReading {
  std::optional<api::Report> report;
  std::int64_t since_ms = 0;  // when its pod was first seen
  std::int64_t heard_ms = 0;  // when the newest metric was read; 0 = none yet
  std::int64_t read_ms = 0;   // all that it had said by then is known; 0 = not read yet
  bool complete = false;      // read to its end, or given up
  std::string silence;        // complete, without a report: why there was none
  std::string trouble;        // why it cannot be read, or was given up; "" = it can
};

struct LogMetricsOptions {
  double calls_per_second = 100;
  std::size_t readers = 8;  // threads; 0 = whoever calls step() reads
};

class LogMetrics {
 public:
  using Changed = std::function<void(const std::string& trial)>;
  LogMetrics(kube::Client& client, control::Clock& clock, Changed changed,
             const LogMetricsOptions& options = {});
  ~LogMetrics();
  LogMetrics(const LogMetrics&) = delete;
  LogMetrics& operator=(const LogMetrics&) = delete;

  // What is known now; sees to it that more will be. `ended`: the pod prints no more.
  LogReading read(const LogSource& source, bool ended);
  // Of a pod that may be gone, by its uid.
  LogReading recall(const std::string& uid) const;
  void forget(const std::string& uid);
  // Waits for the readers; nothing is read afterwards. The destructor does it too.
  void stop();

  // Reads a piece of the log whose turn it is; false when there is none.
  bool step();

 private:
  struct Log;
  using LogPtr = std::shared_ptr<Log>;

  // These require mutex_.
  LogPtr take();
  std::shared_ptr<const runtime::MetricPattern> pattern_of(const api::MetricsFilter& filter);
  void drop_oldest();
  bool settle(Log& log, std::int64_t now_ms, bool at_end);
  bool settle_trouble(Log& log, const Error& error);
  bool publish(Log& log, std::int64_t now_ms);
  void want_again(const Log& log, std::int64_t now_ms, bool at_end);

  void work(const std::stop_token& stop);

  kube::Client& client_;
  control::Clock& clock_;
  const Changed changed_;
  const std::size_t readers_;
  mutable std::mutex mutex_;
  std::condition_variable_any news_;
  std::uint64_t wishes_ = 0;            // grows when somebody may be due earlier than was thought
  std::map<std::string, LogPtr> logs_;  // by the pod's uid
  // By the two expressions of a filter.
  std::map<std::pair<std::string, std::string>, std::weak_ptr<const runtime::MetricPattern>>
      patterns_;
  LogTurns turns_;
  std::int64_t next_ = 0;              // order in which logs came
  std::vector<std::jthread> threads_;  // made when first needed
  bool stopped_ = false;
};

}  // namespace fettle::kubernetes
