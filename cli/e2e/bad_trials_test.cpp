// Trials that misbehave: each is handled and explained, and ends only itself, not the study.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

struct BadTrial {
  std::string name;
  std::string script;
  std::string trial;      // more fields of spec.trial
  std::string resources;  // of the container
  std::string outcome;    // of the run
  std::string said;       // at the end, for people
};

void PrintTo(const BadTrial& trial, std::ostream* out) { *out << trial.name; }

class Misbehaving : public testing::TestWithParam<BadTrial> {};

TEST_P(Misbehaving, FailsTheTrialAndIsExplained) {
  Workshop shop;
  StudyText text;
  text.script = GetParam().script;
  text.trial = "    retries: 0\n    gracePeriod: 0.2s\n" + GetParam().trial;
  if (!GetParam().resources.empty()) text.resources = GetParam().resources;
  text.budget = "{trials: 1}";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("digits-0 failed: "));
  EXPECT_THAT(done.out, HasSubstr(GetParam().said));
  EXPECT_THAT(done.out, HasSubstr("What failed:\n  1 trial: "));
  EXPECT_THAT(done.out, HasSubstr("/digits-0/r0/output.log"));
  const Json trials = shop.trials();
  const Json& run = trials.as_array().at(0).find("status")->find("runs")->as_array().at(0);
  EXPECT_EQ(*run.find("outcome"), Json(GetParam().outcome));
  EXPECT_EQ(shop.trial_processes().size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Trial, Misbehaving,
    testing::Values(
        BadTrial{"Exits", "echo cannot open the data >&2; exit 3", "", "", "Failed",
                 "cannot open the data"},
        // $$ in a template means $, as in Kubernetes.
        BadTrial{"IsKilled", "kill -SEGV $$$$", "", "", "Failed", "SEGV"},
        BadTrial{"PrintsNoMetric", "echo fine", "", "", "Failed", "value"},
        BadTrial{"PrintsGarbage", "head -c 100000 /dev/urandom; echo", "", "", "Failed", "value"},
        BadTrial{"NamesAnotherMetric", "echo '{\"valeu\": 1}'", "", "", "Failed", "valeu"},
        BadTrial{"PrintsNothingThatItsExpressionFinds", "echo value 1",
                 "    metrics: {regex: '(\\w+)=(\\S+)'}\n", "", "Failed",
                 "expected value, as spec.trial.metrics.regex finds it"},
        BadTrial{"Hangs", "sleep 300", "    timeout: 0.2s\n", "", "TimedOut", "timeout"},
        BadTrial{"IgnoresTheEnd", "trap '' TERM; while :; do sleep 0.1; done",
                 "    timeout: 0.2s\n", "", "TimedOut", "timeout"},
        BadTrial{"GoesSilent", "echo '{\"step\": 0, \"value\": 1}'; sleep 300",
                 "    heartbeat: 0.3s\n", "", "Hung", "heartbeat"},
        // Stays outside until Fettle notices.
        BadTrial{"EatsMemory",
                 "exec awk 'BEGIN {s = \"x\"; while (length(s) < 2 ^ 27) s = s s; while (1);}'", "",
                 "{limits: {memory: 50Mi}}", "OutOfMemory", "memory"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Misbehaving, PrintsHundredMegabytesIntoABoundedLog) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 1}";
  text.script = "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo '{\"value\": 1}'";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  const std::string log = shop.path(".fettle/digits/digits-0/r0/output.log");
  EXPECT_LT(std::filesystem::file_size(log), 50'000'000U);
  EXPECT_THAT(shop.fettle({"logs", "digits-0"}).out, HasSubstr("{\"value\": 1}"));
}

TEST(Misbehaving, ForksChildrenThatDoNotOutliveIt) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 2, parallelism: 2}";
  text.script = "sleep 300 & setsid sleep 300 & (setsid sleep 300 &) \n echo '{\"value\": 1}'";
  text.trial = "    gracePeriod: 1s\n";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.trial_processes().size(), 0U);
}

TEST(Misbehaving, OnceIsTriedAgain) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 1}";
  text.script = "[ -e tried ] || { touch tried; exit 7; }\n echo '{\"value\": 1}'";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("digits-0 started again (run 1); the last run ended Failed"));
  EXPECT_THAT(shop.fettle({"logs", "digits-0", "--run", "0"}).out, "");
}

TEST(Misbehaving, SomeTrialsDoNotFailTheStudy) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 4, parallelism: 2, failures: 3}";
  text.trial = "    retries: 0\n";
  text.script =
      "case $FETTLE_TRIAL in */digits-0/*) echo '{\"value\": 1}';; */digits-1/*) echo "
      "'{\"value\": NaN}';; *) exit 5;; esac";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("2 failed, 1 infeasible"));
  EXPECT_THAT(done.out, HasSubstr("What failed:\n  2 trials: "));
}

// The newest value counts, and it is not finite, whatever the earlier values were.
TEST(Misbehaving, DivergesAndIsInfeasible) {
  const std::string json =
      "printf '{\"step\": 1, \"value\": 5}\\n{\"step\": 2, \"value\": %s}\\n' ";
  for (const std::string word : {"nan", "-nan", "inf", "-inf", "null", "1e400"}) {
    Workshop shop;
    StudyText text;
    text.budget = "{trials: 1}";
    text.steps = 2;
    text.script = json + word;
    shop.write("json.yaml", text.yaml());
    EXPECT_THAT(shop.fettle({"run", "json.yaml"}).out,
                HasSubstr("digits-0 completed: infeasible at step 2"))
        << word;
    text.name = "lines";
    text.script = "printf 'epoch 1: value=5\\nepoch 2: value=%s\\n' " + word;
    text.trial = "    metrics: {regex: '(\\w+)=([-+.\\deE]+)', step: 'epoch (\\d+)'}\n";
    shop.write("lines.yaml", text.yaml());
    const Finished done = shop.fettle({"run", "lines.yaml"});
    EXPECT_THAT(done.out, HasSubstr("lines-0 completed: infeasible at step 2")) << word;
    EXPECT_THAT(done.err, HasSubstr("warning: spec.trial.metrics.regex: the group of the value"));
  }
}

TEST(Misbehaving, LinesThatDidNotCountAreSaidAtTheEnd) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 1}";
  text.script =
      "echo '{\"value\": 1}'; echo '{\"value\": \"two\"}'; echo '{\"value\": tensor(nan)}'";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("; the last 2 lines with value held no number"));
}

TEST(Misbehaving, TooManyTrialsFailTheStudy) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 50, parallelism: 1, failures: 2}";
  text.trial = "    retries: 0\n";
  text.script = "exit 5";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("spec.budget.failures"));
  EXPECT_EQ(shop.trials().as_array().size(), 3U);
}

TEST(Misbehaving, ACommandThatDoesNotExistIsNamed) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 1}";
  text.trial = "    retries: 0\n";
  std::string yaml = text.yaml();
  yaml.replace(yaml.find("/bin/sh"), 7, "/no/such/program");
  shop.write("study.yaml", yaml);
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 2) << done.out << done.err;
  EXPECT_THAT(done.err, HasSubstr("there is no /no/such/program"));
  EXPECT_FALSE(shop.exists(".fettle")) << "said before the first trial";
}

TEST(Misbehaving, ACommandThatVanishesWhileTheStudyRunsIsNamed) {
  Workshop shop;
  StudyText text;
  text.script = "rm program; echo '{\"value\": 1}'";
  text.budget = "{trials: 3, parallelism: 1, failures: 3}";
  text.trial = "    retries: 0\n";
  std::string yaml = text.yaml();
  yaml.replace(yaml.find("/bin/sh"), 7, "./program");
  shop.write("study.yaml", yaml);
  std::filesystem::copy_file("/bin/sh", shop.path("program"));
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("command not found: ./program"));
  EXPECT_EQ(shop.count_phase("Failed"), 2U);
}

}  // namespace
}  // namespace fettle::e2e
