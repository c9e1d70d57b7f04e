// Assignments: the runs that a worker is given, and the runs that it should end, by the worker
// protocol (docs/worker-protocol.md).
//
// A run is at hand from its assignment until it is forgotten. Lines that are too long, no JSON, or
// name no run are skipped with a sentence in the log. Thread-safe; a thread of its own reads the
// descriptor, and calls the answers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/json.h"
#include "base/result.h"

namespace fettle::trainer {

struct Assignment {
  std::string run;
  std::map<std::string, std::string> environment;
  std::string variable(const std::string& name) const;  // "" if it is not set
};

class Assignments {
 public:
  struct Settings {
    std::size_t most_waiting = 1;  // further runs are refused
    std::function<void(const std::string& run, const std::string& reason)> refuse;
    // Ends a run that was stopped while it waited. Empty: next() gives it out, and it is stopped.
    std::function<void(const std::string& run)> end_waiting;
    std::function<void(const std::string& line)> log;
  };

  explicit Assignments(Settings settings) : settings_(std::move(settings)) {}
  ~Assignments();
  Assignments(const Assignments&) = delete;
  Assignments& operator=(const Assignments&) = delete;

  // Takes over `fd`. kUnavailable: no thread can be made.
  Status start(int fd);

  enum class Next { kRun, kNoneYet, kNoMore };
  // Waits for the next run, at most for `patience` if it is given.
  Next next(Assignment& run, std::optional<std::chrono::milliseconds> patience = {});
  // Whether the run should end, or all should.
  bool is_stopped(const std::string& run) const;
  // The run has ended.
  void forget(const std::string& run);
  // Stops all runs at hand, and takes no others. Safe in a signal handler.
  void stop_all() const;

 private:
  void read();
  bool read_some();
  void split();
  void take(const std::string& line);
  void log_too_long() const;
  void take_run(const std::string& run, const Json& document);
  void take_stop(const std::string& run);
  void end(bool stops);

  const Settings settings_;
  int fd_ = -1;
  int wake_[2] = {-1, -1};  // a pipe: a byte in it wakes the thread
  std::string unread_;      // of the thread
  bool skips_ = false;      // the thread reads the rest of a line that is too long
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Assignment> waiting_;
  std::set<std::string> at_hand_;  // waiting or given out
  std::set<std::string> stopped_;  // at hand, and should end
  bool ended_ = false;
  bool all_stop_ = false;
  std::thread thread_;
};

}  // namespace fettle::trainer
