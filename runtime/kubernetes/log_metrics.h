// LogMetrics: the reports of trials whose image has no reporter, read off their logs.
//
// A pod that runs is followed, one that has ended is read once from the beginning; after a restart,
// or when the connection broke, its log is read from the beginning again, so nothing is remembered
// that could not be read again. Each pod being read has a thread; there are at most kMostFollowers
// for pods that run and kMostReaders for those that have ended, and the rest wait their turn. What
// is kept of a pod is one report and one partial line (runtime/metric_lines.h).
//
// A report is published at rungs and at the end at once, otherwise at most every kPublishMs: every
// change is a write to the API server. Thread-safe; `changed` is called from the reading threads,
// also during read(), and must return quickly. Threads end in stop().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/clock.h"
#include "kube/client.h"
#include "runtime/metric_lines.h"

namespace fettle::kubernetes {

inline constexpr int kMostFollowers = 64;
inline constexpr int kMostReaders = 8;
inline constexpr std::int64_t kPublishMs = 5'000;
// A log is read so often before its trial goes on without it.
inline constexpr int kMostLogTries = 6;
// Pods whose reports are remembered; of more, the oldest are forgotten.
inline constexpr std::size_t kMostLogs = 4'096;

// Which log, and what to look for in it.
struct LogSource {
  kube::ObjectKey pod;
  std::string uid;
  std::string container;
  std::string trial;  // what `changed` is called with
  runtime::MetricLinesOptions metrics;
};

// What is known of a pod's log.
struct LogReading {
  std::optional<api::Report> report;
  std::int64_t since_ms = 0;  // when its pod was first seen
  bool complete = false;      // read to its end, or given up
  std::string trouble;        // why it was given up; "" = it was not
};

class LogMetrics {
 public:
  using Changed = std::function<void(const std::string& trial)>;
  LogMetrics(kube::Client& client, control::Clock& clock, Changed changed);
  ~LogMetrics();
  LogMetrics(const LogMetrics&) = delete;
  LogMetrics& operator=(const LogMetrics&) = delete;

  // What is known now; sees to it that more will be. `ended`: the pod prints no more.
  LogReading read(const LogSource& source, bool ended);
  // Of a pod that may be gone, by its uid.
  LogReading recall(const std::string& uid) const;
  void forget(const std::string& uid);
  // Waits for the threads; nothing is read afterwards. The destructor does it too.
  void stop();

 private:
  struct Log;
  using LogPtr = std::shared_ptr<Log>;
  // Threads that take logs off a queue; made when needed.
  struct Lane {
    const int most;
    std::deque<LogPtr> waiting;
    int idle = 0;
    std::vector<std::jthread> threads;
  };

  // These require mutex_.
  void enqueue(Lane& lane, const LogPtr& log);
  void drop_oldest();
  void settle(const LogPtr& log, const Status& outcome);

  void work(Lane& lane, const std::stop_token& stop);
  Status read_through(const LogPtr& log, bool follow, const std::stop_token& stop);
  // Whether reading goes on.
  bool publish(const LogPtr& log, const runtime::MetricLines& lines, bool urgent);

  kube::Client& client_;
  control::Clock& clock_;
  const Changed changed_;
  mutable std::mutex mutex_;
  bool stopped_ = false;
  std::condition_variable_any news_;
  std::map<std::string, LogPtr> logs_;  // by the pod's uid
  std::int64_t next_ = 0;               // order in which logs came
  Lane running_{kMostFollowers, {}, 0, {}};
  Lane ended_{kMostReaders, {}, 0, {}};
};

}  // namespace fettle::kubernetes
