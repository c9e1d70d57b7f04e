// LogMetrics: reads the reports of trials whose image has no reporter from their logs.
//
// Logs are polled. A few reader threads fetch one piece of one log at a time (log_cursor.h), in the
// order of a fair queue (log_queue.h), so the number of pods is not limited by threads. A running
// pod is read again after kMinPauseMs, and less often the longer it prints nothing new. An ended
// pod is read once to its end. State per pod is a cursor and one report; after a restart logs are
// read from their beginning.
//
// The first report is published only once the log was read to its end, so a log that is re-read
// after a restart never moves a trial back. Later reports are published at once at rungs and at
// the end, otherwise at most every kPublishMs, because each one is a write to the API server.
// Thread-safe. The readers call `changed`, which must return quickly. They end in stop().
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

#include "core/control/clock.h"
#include "kube/client/client.h"
#include "runtime/kubernetes/log/log_queue.h"
#include "runtime/metric_lines.h"

namespace fettle::kubernetes {

// Delay before the first read, so that a short run is read once, as a whole.
inline constexpr std::int64_t kFirstPauseMs = 500;
inline constexpr std::int64_t kMinPauseMs = 2'000;
inline constexpr std::int64_t kMaxPauseMs = 15'000;
inline constexpr std::int64_t kPublishMs = 5'000;
// Failed reads in a row, or the time over which reads fail, before an event says so. A read that
// gets no answer takes half a minute.
inline constexpr int kMaxLogTries = 6;
inline constexpr std::int64_t kWarnUnreadMs = 20'000;
// While a pod exists its log is on its node. The log of an ended pod is read for this long before
// it is given up, and for ever if reading is forbidden, since no other run could be read either.
inline constexpr std::int64_t kGiveUpMs = 600'000;

// A container's log and how metrics are parsed from it.
struct LogSource {
  kube::ObjectKey pod;
  std::string uid;
  std::string container;
  std::string trial;  // the argument of `changed`
  std::string study;  // the unit of fairness
  runtime::MetricLinesOptions metrics;
};

// The state of a pod's log.
struct LogReading {
  std::optional<api::Report> report;
  std::int64_t since_ms = 0;  // when the pod was first seen
  std::int64_t heard_ms = 0;  // when the newest metric was read; 0 = none yet
  std::int64_t read_ms = 0;   // everything printed before this time was read; 0 = not read yet
  bool complete = false;      // read to its end, or abandoned
  std::string why_no_report;  // complete, without a report: why there was none
  std::string remarks;        // complete: ignored parts of the output (MetricLines::remarks)
  std::string read_error;     // why it cannot be read, or was given up; "" = it can be read
};

struct LogMetricsOptions {
  double calls_per_second = 100;
  std::size_t readers = 8;  // threads; 0 = the caller of step() reads
  // Pods that were read to their end and whose reports are kept in memory.
  std::size_t kept = 4'096;
};

class LogMetrics {
 public:
  using Changed = std::function<void(const std::string& trial)>;
  LogMetrics(kube::Client& client, control::Clock& clock, Changed changed,
             const LogMetricsOptions& options = {});
  ~LogMetrics();
  LogMetrics(const LogMetrics&) = delete;
  LogMetrics& operator=(const LogMetrics&) = delete;

  // Returns the current state and schedules further reads. `ended`: the pod prints no more.
  LogReading read(const LogSource& source, bool ended);
  // Looks up a pod that may be gone, by its uid.
  LogReading recall(const std::string& uid) const;
  void forget(const std::string& uid);
  // Joins the readers; nothing is read afterwards. The destructor calls it.
  void stop();

  // Reads the next piece of the next log in the queue; false if none is due.
  bool step();

 private:
  struct Log;
  using LogPtr = std::shared_ptr<Log>;

  // These require mutex_.
  LogPtr take();
  Result<std::string> read_piece(const Log& log);
  void add_reader();
  std::shared_ptr<const runtime::MetricPattern> pattern_of(const api::MetricsFilter& filter);
  void drop_oldest();
  bool record_piece(Log& log, std::int64_t now_ms, bool at_end);
  bool record_error(Log& log, const Error& error, std::int64_t asked_ms, bool is_gone);
  bool publish(Log& log, std::int64_t now_ms);
  void enqueue_again(const Log& log, std::int64_t now_ms, bool at_end);

  void work(const std::stop_token& stop);
  bool is_gone(const kube::ObjectKey& pod);

  kube::Client& client_;
  control::Clock& clock_;
  const Changed changed_;
  const std::size_t readers_;
  const std::size_t kept_;
  mutable std::mutex mutex_;
  std::condition_variable_any news_;
  std::uint64_t requests_ = 0;          // grows when the next due time may have moved forward
  std::map<std::string, LogPtr> logs_;  // by the pod's uid
  // By the two expressions of a filter.
  std::map<std::pair<std::string, std::string>, std::weak_ptr<const runtime::MetricPattern>>
      patterns_;
  LogQueue queue_;
  std::int64_t next_ = 0;              // order in which logs came
  std::vector<std::jthread> threads_;  // made when first needed
  bool stopped_ = false;
};

}  // namespace fettle::kubernetes
