// Sessions: two at once, killed ones, restarts.
#include "runtime/local/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

#include "base/file.h"
#include "runtime/local/process/process_tree.h"
#include "runtime/local/testing/process_test.h"

namespace fettle::local {
namespace {

using api::Outcome;
using testing::HasSubstr;

pid_t start_victim(const std::string& root) {
  pid_t pid = 0;
  std::string program = "fettle";
  std::string mode = "runner";
  std::string directory = root;
  char* arguments[] = {program.data(), mode.data(), directory.data(), nullptr};
  EXPECT_EQ(::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, ::environ), 0);
  EXPECT_TRUE(eventually([&] { return read_file(root + "/ready").ok(); }));
  EXPECT_EQ(pids_in(root + "/pids").size(), 3u);
  return pid;
}

void kill_and_wait(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(Session, ASecondRunnerIsRefusedAtOnceAndInWords) {
  const Scratch scratch;
  const pid_t victim = start_victim(scratch.path());
  EXPECT_EQ(StudyLock::holder(scratch / "s.lock"), victim);
  const auto second = open_session(scratch.path());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message,
              HasSubstr("another fettle run (process " + std::to_string(victim) + ")"));
  kill_and_wait(victim);
}

TEST(Session, AKilledRunnerIsCleanedUpAfterAndItsOutcomeIsKnown) {
  const Scratch scratch;
  const pid_t victim = start_victim(scratch.path());
  kill_and_wait(victim);
  auto session = open_session(scratch.path());  // waits for the supervisor
  ASSERT_TRUE(session.ok()) << session.error().message;
  for (const pid_t pid : pids_in(scratch / "pids")) EXPECT_FALSE(is_alive(pid));
  const auto runs = (*session)->runs().observe(shell_trial());
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().outcome, Outcome::kDisrupted);
  EXPECT_THAT(runs->front().reason, HasSubstr("fettle run had died"));
  ASSERT_TRUE(runs->front().report);
  EXPECT_EQ(runs->front().report->metrics.at("loss"), 0.5);
}

TEST(Session, RunnerAndSupervisorKilledTogetherLeaveNothing) {
  const Scratch scratch;
  const pid_t victim = start_victim(scratch.path());
  const std::vector<pid_t> supervisor = children(victim);
  ASSERT_EQ(supervisor.size(), 1u);
  ::kill(victim, SIGSTOP);
  ::kill(supervisor[0], SIGKILL);
  kill_and_wait(victim);
  auto session = open_session(scratch.path());
  ASSERT_TRUE(session.ok()) << session.error().message;
  for (const pid_t pid : pids_in(scratch / "pids")) EXPECT_FALSE(is_alive(pid));
  const auto runs = (*session)->runs().observe(shell_trial());
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().outcome, Outcome::kDisrupted);
}

// Starts a process with `variables` and nothing else, in its own session like the processes of
// trials.
pid_t start_sleeper(std::vector<std::string> variables) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string program = "sleep";
  std::string seconds = "100";
  char* arguments[] = {program.data(), seconds.data(), nullptr};
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t pid = 0;
  EXPECT_EQ(::posix_spawn(&pid, "/bin/sleep", nullptr, &attributes, arguments, environment.data()),
            0);
  ::posix_spawnattr_destroy(&attributes);
  return pid;
}

TEST(Session, WhatEscapedEverythingIsSweptUp) {
  const Scratch scratch;
  const pid_t stray = start_sleeper(
      {"FETTLE_TRIAL=" + scratch.path() + "/s/s-0/r1/trial.json", "FETTLE_POD_UID=trial-uid-0-r1"});
  auto reaped = std::async(std::launch::async, [&] { return ::waitpid(stray, nullptr, 0); });
  auto session = open_session(scratch.path());
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(reaped.get(), stray);
}

TEST(Session, WhoTriesATrialByHandIsLeftAlone) {
  const Scratch scratch;
  const std::string mark = "FETTLE_TRIAL=" + scratch.path() + "/s/s-0/r1/trial.json";
  const pid_t by_hand = start_sleeper({mark});
  int terminal = -1;
  const pid_t at_terminal = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (at_terminal == 0) {
    ::execle(
        "/bin/sleep", "sleep", "100", nullptr,
        std::vector<const char*>{mark.c_str(), "FETTLE_POD_UID=trial-uid-0-r1", nullptr}.data());
    ::_exit(127);
  }
  ASSERT_GT(at_terminal, 0);
  ASSERT_TRUE(eventually([&] {
    const auto name = read_file("/proc/" + std::to_string(at_terminal) + "/comm");
    return name.ok() && *name == "sleep\n";
  }));
  auto session = open_session(scratch.path());
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(is_alive(by_hand));
  EXPECT_TRUE(is_alive(at_terminal));
  kill_and_wait(by_hand);
  kill_and_wait(at_terminal);
  ::close(terminal);
}

TEST(Session, ShutdownIsGentleAndKillIsNot) {
  const Scratch scratch;
  auto session = open_session(scratch.path());
  ASSERT_TRUE(session.ok());
  ProcessRuns& runs = (*session)->runs();
  api::Study patient = shell_study("trap 'exit 143' TERM; echo x > " + scratch.path() +
                                   "/a; while :; do sleep 0.01; done");
  api::Study deaf =
      shell_study("trap '' TERM; echo x > " + scratch.path() + "/b; while :; do sleep 0.01; done");
  deaf.spec.trial.grace_period = 100;
  ASSERT_TRUE(runs.start(patient, shell_trial(0), 1).ok());
  ASSERT_TRUE(runs.start(deaf, shell_trial(1), 1).ok());
  ASSERT_TRUE(
      eventually([&] { return read_file(scratch / "a").ok() && read_file(scratch / "b").ok(); }));
  auto done = std::async(std::launch::async, [&] { (*session)->shutdown(); });
  ASSERT_TRUE(eventually(
      [&] { return runs.observe(shell_trial(0))->front().state == core::RunState::kExited; }));
  EXPECT_EQ(runs.observe(shell_trial(0))->front().outcome, Outcome::kDisrupted);
  EXPECT_THAT(runs.observe(shell_trial(0))->front().reason, HasSubstr("was interrupted"));
  EXPECT_EQ(runs.observe(shell_trial(1))->front().state, core::RunState::kRunning);
  (*session)->kill();
  ASSERT_EQ(done.wait_for(std::chrono::seconds(240)), std::future_status::ready);
  EXPECT_EQ(runs.observe(shell_trial(1))->front().state, core::RunState::kExited);
  EXPECT_EQ(runs.start(patient, shell_trial(2), 1).error().code, ErrorCode::kUnavailable);
}

// The clock was three hours fast before the Study was resumed.
TEST(Session, TimesOfTheFutureHoldUpNothing) {
  constexpr std::int64_t kAhead = 3 * 3'600'000;
  const Scratch scratch;
  std::int64_t now_ms = 0;
  {
    const auto session = open_session(scratch.path());
    ASSERT_TRUE(session.ok()) << session.error().message;
    now_ms = (*session)->clock().now_ms();
    api::Trial trial = (*session)->store().create_trial(shell_trial()).value();
    trial.status.runs = shell_trial().status.runs;
    trial.status.runs[0].started_ms = now_ms + kAhead - 5'000;
    trial.status.runs[0].ended_ms = now_ms + kAhead;
    ASSERT_TRUE((*session)->store().update_trial_status(trial).ok());
  }
  std::vector<std::string> said;
  SessionOptions options;
  options.root = scratch.path();
  options.study = "s";
  options.say = [&](const std::string& sentence) { said.push_back(sentence); };
  const auto session = Session::open(options);
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto trial = (*session)->store().get_trial({"", "s-0"}).value();
  EXPECT_LT(trial->status.runs[0].ended_ms, now_ms + 60'000);
  EXPECT_EQ(trial->status.runs[0].ended_ms - trial->status.runs[0].started_ms, 5'000);
  EXPECT_THAT(said, testing::Contains(HasSubstr("in the future: a clock was fast")));
}

TEST(Session, ADirectoryThatCannotBeWritten) {
  const auto session = open_session("/proc/fettle");
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, ErrorCode::kIo);
  EXPECT_THAT(session.error().message, HasSubstr("run it in a directory that can be written"));
}

}  // namespace
}  // namespace fettle::local
