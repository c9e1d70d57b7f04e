// Interrupt: SIGINT, SIGTERM and SIGHUP as something to poll for.
//
// Handlers write to a pipe. Not signalfd: that needs the signals blocked, and a blocked signal
// stays blocked in every process started from here, where trials must receive SIGTERM. Handlers are
// reset when a process is started. SIGPIPE gets an empty handler, so that the study survives a
// reader of stdout that goes away. A signal that was ignored before stays ignored: nohup ignores
// SIGHUP, and a shell without a terminal ignores SIGINT for its jobs in the background. If the main
// thread has taken no signals for kDeafSeconds (the disk hangs, say), the third signal ends the
// process at once, with exit code 130. One object at a time; main thread.
#pragma once

#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fettle::cli {

class Interrupt {
 public:
  static constexpr int kDeafSeconds = 2;

  // kIo: a pipe cannot be made.
  static Result<std::unique_ptr<Interrupt>> install();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Readable after a signal.
  int fd() const { return read_end_; }
  // Returns the number of signals since the last call.
  int take();

 private:
  Interrupt(int read_end, int write_end) : read_end_(read_end), write_end_(write_end) {}
  void handle(int signal, void (*handler)(int));

  int read_end_;
  int write_end_;
  std::vector<std::pair<int, struct sigaction>> before_;  // the former action of each signal
};

}  // namespace fettle::cli
