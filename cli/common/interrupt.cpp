#include "cli/common/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "base/file.h"

namespace fettle::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

constexpr int kLastSignal = 3;
constexpr int kExitAfterInterrupt = 130;

// The state that a signal handler can reach.
std::atomic<int> handler_pipe{-1};
std::atomic<int> untaken{0};
std::atomic<std::int64_t> first_untaken{0};  // seconds
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void on_signal(int) {
  const int error = errno;
  const int count = ++untaken;
  if (count == 1) first_untaken = seconds_now();
  const bool deaf = seconds_now() - first_untaken > Interrupt::kDeafSeconds;
  if (count >= kLastSignal && deaf) ::_exit(kExitAfterInterrupt);
  const char byte = 0;
  // A full pipe holds thousands of signals that have not been taken: one more adds nothing.
  [[maybe_unused]] const ssize_t written = ::write(handler_pipe.load(), &byte, 1);
  errno = error;
}

void on_broken_pipe(int) {}

}  // namespace

Result<std::unique_ptr<Interrupt>> Interrupt::install() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return io_error("cannot make a pipe for signals: " + system_message(errno) +
                    "; raise the limit on open files (ulimit -n)");
  }
  handler_pipe = ends[1];
  untaken = 0;
  std::unique_ptr<Interrupt> made(new Interrupt(ends[0], ends[1]));
  for (const int signal : kSignals) made->handle(signal, on_signal);
  made->handle(SIGPIPE, on_broken_pipe);
  return made;
}

void Interrupt::handle(int signal, void (*handler)(int)) {
  struct sigaction before {};
  ::sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
  before_.emplace_back(signal, before);
}

Interrupt::~Interrupt() {
  for (const auto& [signal, before] : before_) ::sigaction(signal, &before, nullptr);
  handler_pipe = -1;
  ::close(read_end_);
  ::close(write_end_);
}

int Interrupt::take() {
  int taken = 0;
  untaken = 0;
  std::array<char, 64> bytes;
  for (;;) {
    const ssize_t count = ::read(read_end_, bytes.data(), bytes.size());
    if (count <= 0) return taken;
    taken += static_cast<int>(count);
  }
}

}  // namespace fettle::cli
