// Signals to a deaf main thread, which no end-to-end test can do.
#include "cli/common/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace fettle::cli {
namespace {

TEST(Interrupt, EndsAProcessThatTakesNoSignals) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t deaf = ::fork();
  if (deaf == 0) {
    ::signal(SIGINT, SIG_DFL);
    const auto interrupt = Interrupt::install();
    if (!interrupt.ok() || ::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  int status = 0;
  int sent = 0;
  for (; sent < 600 && ::waitpid(deaf, &status, WNOHANG) == 0; ++sent) {
    ::kill(deaf, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (sent == 600) ::kill(deaf, SIGKILL);
  EXPECT_LT(sent, 600);
  EXPECT_GE(sent, 3);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Interrupt, KeepsIgnoredSignalsAndRestoresTheOthers) {
  const auto hangup = ::signal(SIGHUP, SIG_IGN);
  const auto interrupted = ::signal(SIGINT, SIG_DFL);
  {
    const auto interrupt = Interrupt::install();
    ASSERT_TRUE(interrupt.ok());
    ::raise(SIGHUP);
    EXPECT_EQ((*interrupt)->take(), 0);
    ::raise(SIGINT);
    EXPECT_EQ((*interrupt)->take(), 1);
  }
  EXPECT_EQ(::signal(SIGHUP, hangup), SIG_IGN);
  EXPECT_EQ(::signal(SIGINT, interrupted), SIG_DFL);
}

}  // namespace
}  // namespace fettle::cli
