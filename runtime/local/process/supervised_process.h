// SupervisedProcess: a process under a guard (guard.h): its start, its output as bytes, the signals
// to it, and its end. It knows nothing of trials.
//
// Invariant: when it has ended, none of its processes is left, and its output has been read. Owned
// and driven by the supervisor's poll loop; not synchronised; nothing here blocks. Times are Unix
// milliseconds, handed in.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/local/process/guard.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

// Why the process was stopped before it ended by itself.
enum class StopCause { kNone, kAsked, kShutdown, kRunnerGone };

struct ProcessEnd {
  bool reported = true;  // false: the guard was killed before it could report
  GuardReport report;
  StopCause cause = StopCause::kNone;
  bool killed_after_grace = false;  // it did not end on SIGTERM
};

class SupervisedProcess {
 public:
  using Sink = std::function<void(std::string_view bytes)>;

  // Starts the process. Never fails: a process that could not be started has ended().
  // `environments`: one for each worker. `open_files`: their soft limit. `assignments_fd`: the
  // program inherits it; -1 = none.
  SupervisedProcess(const SupervisorCommand& command,
                    std::vector<std::vector<std::string>> environments, int lock_fd,
                    std::int64_t open_files, int assignments_fd);
  ~SupervisedProcess();
  SupervisedProcess(const SupervisedProcess&) = delete;
  SupervisedProcess& operator=(const SupervisedProcess&) = delete;

  pid_t guard() const { return guard_.pid; }
  // "" or why no process could be made.
  const std::string& start_error() const { return start_error_; }

  // Adds the files to poll for input, except closed files.
  void add_polls(std::vector<pollfd>& polls) const;
  // Hands on the available output, at most kReadBytes of each stream: a process that prints without
  // end gets no more of the loop than any other. At its end, the rest.
  void read(const Sink& output, const Sink& errors);
  // Enforces the grace period; call when wake_ms() has come.
  void tick(std::int64_t now_ms);
  std::int64_t wake_ms() const;

  // Whether all its processes have closed their standard output.
  bool output_ended() const { return guard_.output < 0; }

  // Sets the number of workers, if it may change.
  void resize(std::int64_t workers);
  // Stops gently: SIGTERM to its processes in turn (gentle_stop.h), SIGKILL after the grace period.
  // The first cause stands.
  void stop(StopCause cause, std::int64_t now_ms);
  // Sends SIGKILL to all its processes now.
  void kill(StopCause cause, std::int64_t now_ms);

  bool ended() const { return ended_; }
  // Complete once it has ended().
  const ProcessEnd& end() const { return end_; }

 private:
  bool read_status();

  const bool is_open_;  // the number of workers may change
  const std::int64_t grace_ms_;
  Guard guard_;
  std::string status_bytes_;
  ProcessEnd end_;
  bool ended_ = false;
  std::string start_error_;
  bool killing_ = false;
  std::int64_t kill_at_ms_ = 0;  // end of the grace period; 0 = not stopping
};

}  // namespace fettle::local
