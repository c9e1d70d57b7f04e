// The live screen, as a terminal receives it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/test_paths.h"
#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

// Runs a study in a terminal of 80 columns, whose trials end once `awaited` was written to it.
// Returns all output; "" if the study never ends.
std::string run_in_terminal(const Workshop& shop, const char* name, const char* value,
                            const std::string& awaited,
                            std::vector<const char*> arguments = {"run", "study.yaml"}) {
  winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    ::setenv(name, value, 1);
    if (::chdir(shop.directory().c_str()) != 0) ::_exit(127);
    arguments.insert(arguments.begin(), "fettle");
    arguments.push_back(nullptr);
    ::execv(program_path("fettle").c_str(), const_cast<char* const*>(arguments.data()));
    ::_exit(127);
  }
  std::string written;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  char buffer[4096];
  while (std::chrono::steady_clock::now() < deadline) {
    pollfd polled{terminal, POLLIN, 0};
    ::poll(&polled, 1, 100);
    if (polled.revents == 0) continue;
    const ssize_t count = ::read(terminal, buffer, sizeof buffer);
    if (count <= 0) break;  // the last process with the terminal has closed it
    written.append(buffer, static_cast<std::size_t>(count));
    if (written.find(awaited) != std::string::npos) shop.write("go", "");
  }
  if (std::chrono::steady_clock::now() >= deadline) ::kill(pid, SIGKILL);
  int status = 0;
  const bool ended = ::waitpid(pid, &status, 0) == pid;
  ::close(terminal);
  return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? written : "";
}

class Terminal : public testing::Test {
 protected:
  Terminal() {
    StudyText text;
    text.script = "while [ ! -e go ]; do sleep 0.02; done; echo '{\"value\": 1}'";
    shop_.write("study.yaml", text.yaml());
  }
  Workshop shop_;
};

TEST_F(Terminal, ShowsAScreenInPlaceAndThenTheResult) {
  const std::string written = run_in_terminal(shop_, "TERM", "xterm", "2 running");
  EXPECT_THAT(written, HasSubstr("2 running"));
  EXPECT_THAT(written, HasSubstr("\x1b["));
  EXPECT_THAT(written, HasSubstr("ready to paste"));
}

TEST_F(Terminal, IsLeftAsItWas) {
  const std::string written = run_in_terminal(shop_, "TERM", "xterm", "2 running");
  ASSERT_NE(written, "");
  EXPECT_THAT(written, Not(HasSubstr("\x1b[?"))) << "a mode was switched: who switches it back?";
}

TEST_F(Terminal, HasNoColoursWithNoColor) {
  const std::string written = run_in_terminal(shop_, "NO_COLOR", "1", "2 running");
  EXPECT_THAT(written, HasSubstr("2 running"));
  EXPECT_THAT(written, Not(testing::ContainsRegex("\x1b\\[[0-9]+m")));
}

TEST_F(Terminal, GetsPlainLinesWhenItIsDumb) {
  const std::string written = run_in_terminal(shop_, "TERM", "dumb", "digits-0 started");
  EXPECT_THAT(written, HasSubstr("digits-0 started"));
  EXPECT_THAT(written, Not(HasSubstr("\x1b")));
}

TEST_F(Terminal, GetsOnlyTheColoursOfATrialsOutput) {
  const std::string clipboard = "\x1b]52;c;ZXZpbA==\x07";
  const std::string printed = "a" + clipboard + "\x1b[32mgreen\x1b[0m";
  StudyText text;
  text.budget = "{trials: 1}";
  text.script =
      "printf 'a\\033]52;c;ZXZpbA==\\007\\033[32mgreen\\033[0m\\n'; echo '{\"value\": 1}'";
  shop_.write("study.yaml", text.yaml());
  ASSERT_EQ(shop_.fettle({"run", "study.yaml"}).code, 0);
  const auto in_terminal = [&](std::vector<const char*> arguments) {
    return run_in_terminal(shop_, "TERM", "xterm", "value", std::move(arguments));
  };
  EXPECT_THAT(in_terminal({"logs", "digits-0"}), HasSubstr("a\x1b[32mgreen\x1b[0m"));
  EXPECT_THAT(in_terminal({"logs", "digits-0", "--raw"}), HasSubstr(printed));
  EXPECT_THAT(shop_.fettle({"logs", "digits-0"}).out, HasSubstr(printed));
}

}  // namespace
}  // namespace fettle::e2e
