// Assignments: the runs that a worker is given, and the runs that it should end, by the worker
// protocol (docs/worker-protocol.md).
//
// Thread-safe. One own thread reads the descriptor until it ends, or finish() is called.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"

namespace fettle::trainer {

inline constexpr std::size_t kLongestAssignment = 256 << 10;

struct Assignment {
  std::string run;
  std::map<std::string, std::string> environment;
  std::string variable(const std::string& name) const;  // "" if it is not set
};

class Assignments {
 public:
  // Takes over `fd`. kUnavailable: no thread can be made.
  Status start(int fd);
  ~Assignments();

  // Waits for the next run; absent: no more come.
  std::optional<Assignment> next();
  // Whether the run should end, or all should.
  bool is_stopped(const std::string& run) const;
  // The run has ended.
  void forget(const std::string& run);
  // Stops all runs. Gives out no further run, like finish(). Safe in a signal handler.
  void stop_all() const;
  // Gives out no further run: waiting runs are dropped.
  void finish() const;

 private:
  void read();
  bool read_some(int fd);
  void take(std::string_view line);
  void end(bool drops, bool stops);

  int fd_ = -1;
  int wake_[2] = {-1, -1};  // a pipe: a byte in it wakes the thread
  std::string unread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Assignment> waiting_;
  std::set<std::string> stopped_;
  bool ended_ = false;
  bool all_stop_ = false;
  std::atomic<bool> is_ending_ = false;  // the thread ends
  std::thread thread_;
};

}  // namespace fettle::trainer
