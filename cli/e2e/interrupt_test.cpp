// The death of fettle, from any cause: no trial is lost, none runs twice at once, no process is
// left over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

// Trials of a quarter of a second that note when they begin, and complain if the same trial already
// runs: each holds a directory while it runs, also past kill -9 of fettle. From the 17th run on
// they wait for the file `go`.
StudyText guarded_study() {
  StudyText text;
  text.budget = "{trials: 24, parallelism: 4}";
  text.trial = "    gracePeriod: 100s\n";
  text.script =
      "trial=$(basename \"$(dirname \"$(dirname \"$FETTLE_TRIAL\")\")\")\n"
      "trap 'rmdir \"held-$trial\"; exit 143' TERM\n"
      "mkdir \"held-$trial\" 2> /dev/null || echo \"$trial\" >> twice\n"
      "echo \"$trial\" >> began\n"
      "for i in 1 2 3 4 5; do sleep 0.05; done\n"
      "while [ $(wc -l < began) -gt 16 ] && [ ! -e go ]; do sleep 0.05; done\n"
      "rmdir \"held-$trial\"\n"
      "echo '{\"value\": 1}'\n";
  return text;
}

TEST(Killed, AtAnyMomentGoesOnWhereItWas) {
  Workshop shop;
  // Before anything exists, as trials begin, and as some end and others begin.
  for (const std::size_t trials_begun : {0, 1, 4, 9, 16}) {
    const pid_t runner = shop.run_until_begun(guarded_study(), trials_begun);
    EXPECT_EQ(shop.interrupt(runner, SIGKILL).code, 128 + SIGKILL);
  }
  shop.write("go", "");
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.count_phase("Completed"), 24U);
  EXPECT_EQ(shop.read("twice"), "");
  EXPECT_EQ(shop.trial_processes().size(), 0U);
}

TEST(Interrupted, StoresReportsOfTheGracePeriod) {
  Workshop shop;
  StudyText text;
  text.script =
      "trap 'echo \"{\\\"step\\\": 7, \\\"value\\\": 3}\"; exit 1' TERM; "
      "echo '{\"step\": 1, \"value\": 5}'; echo x >> began; while :; do sleep 0.05; done";
  text.trial = "    gracePeriod: 20s\n";
  text.budget = "{trials: 1}";
  text.steps = 9;
  const pid_t runner = shop.run_until_begun(text, 1);
  const auto is_at = [&shop](const std::string& step) {
    return shop.fettle({"trials", "digits"}).out.find(step) != std::string::npos;
  };
  ASSERT_TRUE(shop.wait_until([&] { return is_at(" 1/9 "); })) << "its first report is stored";
  shop.interrupt(runner, SIGINT);
  EXPECT_TRUE(is_at(" 7/9 ")) << shop.fettle({"trials", "digits"}).out;
}

TEST(Killed, LeavesNoProcessBehind) {
  Workshop shop;
  StudyText text;
  text.script = "echo x >> began; sleep 300 & sleep 300";
  text.trial = "    gracePeriod: 1s\n";
  const pid_t runner = shop.run_until_begun(text, 2);
  shop.interrupt(runner, SIGKILL);
  EXPECT_TRUE(shop.wait_until_no_trial_runs());
  EXPECT_THAT(shop.fettle({"status", "digits"}).out, HasSubstr("digits · interrupted"));
}

TEST(Killed, FreshMovesAllThatWasRecordedAsideInOneFile) {
  Workshop shop;
  StudyText text;
  text.script = kUntilGo;
  text.trial = "    gracePeriod: 1s\n";
  const pid_t runner = shop.run_until_begun(text, 2);
  shop.interrupt(runner, SIGKILL);
  ASSERT_TRUE(shop.exists(".fettle/digits.db-wal"));
  shop.write("go", "");
  EXPECT_EQ(shop.fettle({"run", "study.yaml", "--fresh"}).code, 0);
  EXPECT_TRUE(shop.exists(".fettle/.old/digits-1/digits.db"));
  EXPECT_FALSE(shop.exists(".fettle/.old/digits-1/digits.db-wal"));
  EXPECT_TRUE(shop.exists(".fettle/.old/digits-1/digits/digits-0"));
}

class Signalled : public testing::TestWithParam<int> {};

TEST_P(Signalled, StopsGentlyAndSaysHowToGoOn) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 2, parallelism: 1}";
  text.script =
      "trap 'echo x >> gentle; exit 143' TERM\n"
      "echo x >> began\n"
      "while [ ! -e go ]; do sleep 0.05; done\n"
      "echo '{\"value\": 1}'\n";
  shop.write("study.yaml", text.yaml());
  const pid_t runner = shop.start({"run", "study.yaml", "--parallelism=2"});
  ASSERT_TRUE(shop.wait_for_lines("began", 2));
  const Finished stopped = shop.interrupt(runner, GetParam());
  EXPECT_EQ(stopped.code, 130) << stopped.out << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("To resume: fettle run study.yaml --parallelism 2\n"));
  EXPECT_EQ(shop.count_lines("gentle"), 2U);
  EXPECT_EQ(shop.trial_processes().size(), 0U);

  shop.write("go", "");
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.count_phase("Completed"), 2U);
}

INSTANTIATE_TEST_SUITE_P(By, Signalled, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(Signalled, TwiceKillsAtOnce) {
  Workshop shop;
  StudyText text;
  text.trial = "    gracePeriod: 300s\n";
  text.script =
      "trap 'echo x >> told' TERM; trap '' INT; echo x >> began; while :; do sleep 0.05; done";
  const pid_t runner = shop.run_until_begun(text, 2);
  ::kill(runner, SIGINT);
  ASSERT_TRUE(shop.wait_for_lines("told", 2));
  EXPECT_FALSE(shop.trial_processes().empty());
  EXPECT_EQ(shop.interrupt(runner, SIGINT).code, 130);
  EXPECT_EQ(shop.trial_processes().size(), 0U);
}

// As under systemctl stop, scancel and shutdown: the program still saves when its shell has died,
// and when all of fettle has received the same signal.
TEST(Signalled, WithAllItsProcessesItLeavesTheTrialsTheirGracePeriod) {
  Workshop shop;
  shop.write("save.sh",
             "trap 'echo x >> told; sleep 1; echo x >> saved; exit 143' TERM\n"
             "echo x >> began\n"
             "while :; do sleep 0.05; done\n");
  StudyText text;
  text.budget = "{trials: 2, parallelism: 2}";
  text.trial = "    gracePeriod: 60s\n";
  text.script = "sh save.sh; true";
  const pid_t runner = shop.run_until_begun(text, 2);
  std::vector<pid_t> all = shop.descendants(runner);
  EXPECT_GE(all.size(), 7U) << "a supervisor, and two guards, shells, and programs";
  all.push_back(runner);
  // Signals all at once, however busy the machine is: no process acts before all have the signal.
  for (const int signal : {SIGSTOP, SIGTERM, SIGCONT}) {
    for (const pid_t pid : all) ::kill(pid, signal);
  }
  const Finished stopped = shop.finish(runner);
  EXPECT_EQ(stopped.code, 130) << stopped.out << stopped.err;
  EXPECT_EQ(shop.count_lines("told"), 2U) << "each once";
  EXPECT_EQ(shop.count_lines("saved"), 2U);
  EXPECT_EQ(shop.trial_processes().size(), 0U);
}

// nohup ignores SIGHUP; a shell that reads a script ignores SIGINT for commands started with `&`.
TEST(Signalled, ASignalIgnoredFromTheStartDoesNotStopIt) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 2, parallelism: 2}";
  text.script = kUntilGo;
  shop.ignore(SIGHUP);
  shop.ignore(SIGINT);
  const pid_t runner = shop.run_until_begun(text, 2);
  ::kill(runner, SIGHUP);
  ::kill(runner, SIGINT);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  shop.write("go", "");
  const Finished done = shop.finish(runner);
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.count_lines("began"), 2U);
  EXPECT_EQ(shop.count_phase("Completed"), 2U);
}

// The supervisor is deaf, so `fettle run` hears nothing from it.
TEST(Signalled, AThirdSignalEndsEvenAHangingRun) {
  Workshop shop;
  StudyText text;
  text.trial = "    gracePeriod: 300s\n";
  text.script = "trap '' TERM; echo x >> began; while :; do sleep 0.05; done";
  const pid_t runner = shop.run_until_begun(text, 2);
  const std::vector<pid_t> below = shop.descendants(runner);
  ASSERT_FALSE(below.empty());
  ::kill(below[0], SIGSTOP);
  // Two signals before the first is taken count as one, so it signals until the process has left.
  const auto has_ended = [&] {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(runner), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == runner;
  };
  int asked = 0;
  EXPECT_TRUE(shop.wait_until([&] {
    ::kill(runner, SIGINT);
    ++asked;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return has_ended();
  }));
  EXPECT_GE(asked, 3);
  const Finished left = shop.finish(runner);
  EXPECT_EQ(left.code, 130) << left.out << left.err;
  EXPECT_THAT(left.err, HasSubstr("the supervisor does not answer"));
  EXPECT_TRUE(shop.wait_until_no_trial_runs());
}

TEST(Locked, ASecondRunIsRefused) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 1}";
  text.script = kUntilGo;
  const pid_t first = shop.run_until_begun(text, 1);
  for (const char* fresh : {"--output", "--fresh"}) {
    std::vector<std::string> words = {"run", "study.yaml", fresh};
    if (words.back() == "--output") words.emplace_back("text");
    const Finished second = shop.fettle(words);
    EXPECT_EQ(second.code, 3) << second.out;
    EXPECT_THAT(second.err, HasSubstr(std::to_string(first)));
  }
  shop.write("go", "");
  EXPECT_EQ(shop.finish(first).code, 0);
  EXPECT_EQ(shop.count_lines("began"), 1U);
}

TEST(Store, ThatCannotBeWrittenIsSaidSo) {
  if (::geteuid() == 0) {
    // Permissions do not stop root, but a file in place of the directory does.
    Workshop shop;
    shop.write("study.yaml", StudyText{}.yaml());
    shop.write(".fettle", "not a directory");
    const Finished done = shop.fettle({"run", "study.yaml"});
    EXPECT_EQ(done.code, 3);
    EXPECT_THAT(done.err, HasSubstr(".fettle"));
    EXPECT_EQ(shop.read(".fettle"), "not a directory");
    return;
  }
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ::chmod(shop.directory().c_str(), 0555);
  const Finished done = shop.fettle({"-C", shop.directory(), "run", "study.yaml"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr(".fettle"));
}

TEST(Store, ThatIsDamagedIsSaidSoAndLeftAlone) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  const std::string garbage(10'000, 'x');
  shop.write(".fettle/digits.db", garbage);
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("digits.db"));
  EXPECT_EQ(shop.read(".fettle/digits.db"), garbage);
  EXPECT_EQ(shop.fettle({"status", "digits"}).code, 3);
}

}  // namespace
}  // namespace fettle::e2e
