// fettle init, stop, delete, best --output env, and the pages derived from the tree of commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kUntilStopped[] =
    "trap 'echo gently >> ends; exit 1' TERM; echo x >> began; while :; do sleep 0.05; done";

StudyText long_study() {
  StudyText text;
  text.script = kUntilStopped;
  text.trial = "    gracePeriod: 20s\n";
  text.budget = "{trials: 2, parallelism: 2}";
  return text;
}

class Init : public testing::TestWithParam<const char*> {};

TEST_P(Init, WritesAStudyThatRunsAsItIs) {
  Workshop shop;
  const Finished written = shop.fettle({"init", GetParam()});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("fettle run study.yaml"));
  const Finished checked = shop.fettle({"validate", "study.yaml"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.err, IsEmpty()) << "no warning";
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("Best: "));
  const std::string before = shop.read("study.yaml");
  const Finished again = shop.fettle({"init", GetParam()});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists and is left as it is"));
  EXPECT_EQ(shop.read("study.yaml"), before);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Init, testing::Values("python", "shell", "trainer"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(InitOverAFile, WritesNothing) {
  Workshop shop;
  shop.write("study.yaml", "mine");
  EXPECT_EQ(shop.fettle({"init"}).code, 2);
  EXPECT_FALSE(shop.exists("train.py"));
}

TEST(Stop, EndsTheTrialsGentlyAndReturnsWhenTheyHaveEnded) {
  Workshop shop;
  const pid_t runner = shop.run_until_begun(long_study(), 2);
  const Finished stopped = shop.fettle({"stop", "digits"});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("study digits has stopped and nothing is lost"));
  EXPECT_EQ(shop.trial_processes().size(), 0U);
  EXPECT_EQ(shop.count_lines("ends"), 2U);
  EXPECT_EQ(shop.finish(runner).code, 128 + SIGINT);
  const Finished again = shop.fettle({"stop", "digits"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("study digits is not running: it is interrupted"));
}

// A shell without a terminal starts its background jobs like this.
TEST(Stop, ReachesARunnerThatIgnoresInterrupts) {
  Workshop shop;
  shop.ignore(SIGINT);
  const pid_t runner = shop.run_until_begun(long_study(), 2);
  EXPECT_THAT(shop.fettle({"stop", "digits"}).out, HasSubstr("has stopped and nothing is lost"));
  EXPECT_EQ(shop.finish(runner).code, 128 + SIGINT);
}

TEST(Stop, SaysThatTheStudyEndedBeforeItStopped) {
  Workshop shop;
  for (const int signal : {SIGINT, SIGTERM}) shop.ignore(signal);
  StudyText text = long_study();
  text.script = R"(echo x >> began; sleep 1; echo '{"step": 3, "value": 1}')";
  const pid_t runner = shop.run_until_begun(text, 2);
  EXPECT_THAT(shop.fettle({"stop", "digits"}).out,
              HasSubstr("study digits ended by itself before it stopped: it has succeeded"));
  EXPECT_EQ(shop.finish(runner).code, 0);
}

TEST(Stop, NowKillsThem) {
  Workshop shop;
  StudyText text = long_study();
  text.script = "trap '' TERM; echo x >> began; while :; do sleep 0.05; done";
  text.trial = "    gracePeriod: 10m\n";
  const pid_t runner = shop.run_until_begun(text, 2);
  EXPECT_EQ(shop.fettle({"stop", "digits", "--now"}).code, 0);
  EXPECT_EQ(shop.trial_processes().size(), 0U);
  EXPECT_EQ(shop.finish(runner).code, 128 + SIGINT);
}

TEST(Stop, SaysWhichStudiesThereAre) {
  Workshop shop;
  const Finished none = shop.fettle({"stop", "digits"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("no study 'digits' in .fettle"));
}

TEST(Delete, RefusesAStudyThatRuns) {
  Workshop shop;
  const pid_t runner = shop.run_until_begun(long_study(), 2);
  const Finished refused = shop.fettle({"delete", "digits"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("study digits is running; stop it first: fettle stop digits"));
  EXPECT_TRUE(shop.exists(".fettle/digits.db"));
  shop.interrupt(runner, SIGINT);
}

TEST(Delete, RemovesTheStudyAndKeepsTheOthers) {
  Workshop shop;
  StudyText other;
  other.name = "crumbs";
  for (const StudyText& text : {StudyText{}, other}) {
    shop.write("study.yaml", text.yaml());
    ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  }
  EXPECT_EQ(shop.fettle({"delete", "digits"}).code, 0);
  for (const char* const file : {"digits.db", "digits", "digits.lock", "digits.lock.runner"}) {
    EXPECT_FALSE(shop.exists(std::string(".fettle/") + file)) << file;
  }
  EXPECT_THAT(shop.fettle({"delete", "digits"}).err,
              HasSubstr("no study 'digits' in .fettle; there are: crumbs"));
  EXPECT_EQ(shop.fettle({"best", "crumbs"}).code, 0);
}

TEST(BestAsEnvironment, IsReadableByAShell) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  EXPECT_THAT(shop.fettle({"best", "digits", "--output", "env"}).out,
              testing::MatchesRegex("export FETTLE_PARAM_X=[0-9.e-]+\n"));
}

TEST(Pages, KnowEveryCommand) {
  Workshop shop;
  const std::string help = shop.fettle({"--help"}).out;
  for (const std::vector<std::string>& page : {std::vector<std::string>{"completion", "bash"},
                                               {"completion", "zsh"},
                                               {"completion", "fish"},
                                               {"pages", "man"},
                                               {"pages", "markdown"}}) {
    const Finished printed = shop.fettle(page);
    EXPECT_EQ(printed.code, 0) << printed.err;
    EXPECT_THAT(printed.out, AllOf(HasSubstr("suggest"), HasSubstr("early"), HasSubstr("run")));
  }
  EXPECT_THAT(help, HasSubstr("completion"));
  EXPECT_EQ(shop.fettle({"completion", "tcsh"}).code, 2);
}

}  // namespace
}  // namespace fettle::e2e
