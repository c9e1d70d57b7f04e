// A guard by itself, under limits that a test cannot put on its own process.
#include "runtime/local/process/guard.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace fettle::local {
namespace {

constexpr uid_t kNobodyElse = 61'234;  // no other process belongs to it

// The guard's final report; if it fails to report, the failure is kDirectory.
GuardReport await_report(const Guard& guard) {
  GuardReport report;
  report.failure = GuardReport::kDirectory;
  pollfd polled{guard.status, POLLIN, 0};
  ::poll(&polled, 1, 60'000);
  if (::read(guard.status, &report, sizeof report) != sizeof report) {
    report.failure = GuardReport::kDirectory;
  }
  return report;
}

// Becomes a user who may have two processes, this one and the guard, and after a second some more.
[[noreturn]] void become_small_user() {
  const rlimit narrow{2, 100};
  const rlimit wide{50, 100};
  if (::setrlimit(RLIMIT_NPROC, &narrow) != 0 || ::setuid(kNobodyElse) != 0) ::_exit(1);
  SupervisorCommand command;
  command.arguments = {"/bin/sh", "-c", "exit 7"};
  const Result<Guard> guard = start_guard({command, {{"PATH=/bin"}}});
  if (!guard.ok()) ::_exit(2);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  if (::prlimit(guard->pid, RLIMIT_NPROC, &wide, nullptr) != 0) ::_exit(3);
  const GuardReport report = await_report(*guard);
  const bool ran = report.failure == GuardReport::kNone && WIFEXITED(report.wait_status) &&
                   WEXITSTATUS(report.wait_status) == 7;
  ::_exit(ran ? 0 : 10 + report.failure);
}

TEST(Guard, WaitsUntilThereIsRoomForAProcess) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t user = ::fork();
  if (user == 0) become_small_user();
  int status = 0;
  ASSERT_EQ(::waitpid(user, &status, 0), user);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace fettle::local
