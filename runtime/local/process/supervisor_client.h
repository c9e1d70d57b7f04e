// SupervisorClient: the runner's end of the supervisor: starts it, sends commands, reads events.
//
// send() from any thread. on_event and on_lost are called from the client's own thread; on_lost is
// the last call, once, when the supervisor has gone (after an orderly shutdown too).
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/line_buffer.h"
#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

class SupervisorClient {
 public:
  // Starts `executable supervise --fd N` and waits until it has removed the leftovers of an earlier
  // runner. `lock_fd` is handed down. kIo: it could not be started.
  static Result<std::unique_ptr<SupervisorClient>> start(const std::string& executable,
                                                         const std::string& study_directory,
                                                         int lock_fd);
  // Closes the socket (the supervisor then stops everything) and waits for the supervisor to end.
  ~SupervisorClient();

  // Begins to deliver events; once, before the first kStart. kUnavailable: no thread can be made.
  Status listen(std::function<void(const SupervisorEvent&)> on_event,
                std::function<void(const std::string& reason)> on_lost);
  Status send(const SupervisorCommand& command);
  // Blocks until on_lost has been called.
  void join();
  pid_t pid() const { return pid_; }

 private:
  SupervisorClient(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  Result<std::string> read_line();
  void read_events();
  void give_up(const std::string& why);

  const pid_t pid_;
  const int fd_;
  LineBuffer received_{kMaxMessageBytes};
  std::mutex send_mutex_;
  std::mutex join_mutex_;
  std::function<void(const SupervisorEvent&)> on_event_;
  std::function<void(const std::string&)> on_lost_;
  std::thread reader_;
};

}  // namespace fettle::local
