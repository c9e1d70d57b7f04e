#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/file.h"

namespace fettle::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// The one thing a signal handler can reach.
std::atomic<int> handler_pipe{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int) {
  const int error = errno;
  const char byte = 0;
  // A full pipe holds thousands of signals that nobody has taken yet: one more says nothing new.
  [[maybe_unused]] const ssize_t written = ::write(handler_pipe.load(), &byte, 1);
  errno = error;
}

void on_broken_pipe(int) {}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Result<std::unique_ptr<Interrupt>> Interrupt::install() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return io_error("no pipe for signals: " + system_message(errno));
  }
  handler_pipe = ends[1];
  for (const int signal : kSignals) set_handler(signal, on_signal);
  set_handler(SIGPIPE, on_broken_pipe);
  return std::unique_ptr<Interrupt>(new Interrupt(ends[0], ends[1]));
}

Interrupt::~Interrupt() {
  for (const int signal : kSignals) set_handler(signal, SIG_DFL);
  handler_pipe = -1;
  ::close(read_end_);
  ::close(write_end_);
}

int Interrupt::take() {
  int taken = 0;
  std::array<char, 64> bytes;
  for (;;) {
    const ssize_t count = ::read(read_end_, bytes.data(), bytes.size());
    if (count <= 0) return taken;
    taken += static_cast<int>(count);
  }
}

}  // namespace fettle::cli
