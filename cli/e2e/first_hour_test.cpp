// The first hour of a user with their own program: where it runs, and which messages it gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_paths.h"
#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(FirstHour, TrialsStartInTheFolderOfTheStudyFile) {
  Workshop shop;
  shop.write("project/train.sh", "pwd >> seen; echo '{\"value\": 1}'\n");
  StudyText text;
  text.script = ". ./train.sh";
  text.budget = "{trials: 1}";
  shop.write("project/study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "project/study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.read("project/seen"), shop.path("project") + "\n");
  EXPECT_TRUE(shop.exists(".fettle/digits.db")) << "state stays where fettle was started";
  // A Study from standard input has no folder.
  text.name = "piped";
  text.script = "pwd > here; echo '{\"value\": 1}'";
  EXPECT_EQ(shop.fettle({"run", "-"}, text.yaml()).code, 0);
  EXPECT_EQ(shop.read("here"), shop.directory() + "\n");
}

TEST(FirstHour, AnAbsoluteWorkingDirectoryIsTakenAsItIs) {
  Workshop shop;
  StudyText text;
  text.script = "pwd > " + shop.path("seen") + "; echo '{\"value\": 1}'";
  text.budget = "{trials: 1}";
  text.resources = "{requests: {cpu: 10m}}\n          workingDir: /usr";
  shop.write("project/study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "project/study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.read("seen"), "/usr\n");
}

TEST(FirstHour, AScriptThatIsNotThereIsSaidBeforeTheFirstTrial) {
  Workshop shop;
  StudyText text;
  std::string yaml = text.yaml();
  const std::string shell = "command: [/bin/sh, -c]";
  yaml.replace(yaml.find(shell), shell.size(), "command: [/bin/sh, train.sh]");
  shop.write("project/study.yaml", yaml);
  const Finished done = shop.fettle({"run", "project/study.yaml"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("there is no train.sh in " + shop.path("project") +
                                  ", where trials start"));
  EXPECT_FALSE(shop.exists(".fettle"));
  shop.write("project/train.sh", "echo $FETTLE_PARAM_Y '{\"value\": 1}'\n");
  EXPECT_THAT(shop.fettle({"validate", "project/study.yaml"}).err,
              HasSubstr("warning: parameter x: the template and its script do not mention "
                        "FETTLE_PARAM_X"));
}

TEST(FirstHour, AProgramThatCannotStartRunsOnceATrial) {
  Workshop shop;
  StudyText text;
  text.script = "echo x >> began; echo 'No module named nupmy' >&2; exit 1";
  text.budget = "{trials: 8, parallelism: 2, failures: 8}";
  text.trial = "    retries: 5\n";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 1);
  EXPECT_THAT(done.out + done.err, HasSubstr("No module named nupmy"));
  EXPECT_EQ(shop.count_phase("Failed"), 8U);
  // The first two may have begun again before the fault was known.
  EXPECT_LE(shop.count_lines("began"), 10U);
}

TEST(FirstHour, AdvisesAnExpressionForAnUnreadMetric) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 1}";
  text.script = "echo 'epoch 1 - Value: 0.3'";
  shop.write("study.yaml", text.yaml());
  EXPECT_THAT(shop.fettle({"run", "study.yaml"}).out,
              HasSubstr("spec.trial.metrics: {regex: '(\\w+): ([-+.\\w]+)'} reads it, with "
                        "metric: Value in place of value"));
  text.script = "echo '{\"Value\": 0.3}'";
  shop.write("study.yaml", text.yaml());
  EXPECT_THAT(shop.fettle({"run", "study.yaml", "--fresh"}).out,
              HasSubstr("holds Value, and the Study asks for value: case counts"));
  text.script = "echo 'value'";
  shop.write("study.yaml", text.yaml());
  EXPECT_THAT(shop.fettle({"run", "study.yaml", "--fresh"}).out,
              HasSubstr("spec.trial.metrics.regex says how such a line is read"));
}

TEST(FirstHour, ACommandWithoutAStudyTakesTheOnlyOrTheNewestOne) {
  Workshop shop;
  EXPECT_THAT(shop.fettle({"best"}).err, HasSubstr("there is no study in .fettle; fettle run"));
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  const Finished only = shop.fettle({"best"});
  EXPECT_EQ(only.code, 0);
  EXPECT_THAT(only.out, HasSubstr("# value 1: digits-0"));
  EXPECT_THAT(only.err, IsEmpty());
  EXPECT_THAT(shop.fettle({"report"}).out, HasSubstr("Wrote digits.html"));
  EXPECT_THAT(shop.fettle({"status"}).out, HasSubstr("digits · succeeded"));
  EXPECT_THAT(shop.fettle({"status", "--output", "json"}).out, testing::StartsWith("[{"));

  StudyText later;
  later.name = "crumbs";
  shop.write("later.yaml", later.yaml());
  ASSERT_EQ(shop.fettle({"run", "later.yaml"}).code, 0);
  const Finished newest = shop.fettle({"trials"});
  EXPECT_THAT(newest.out, AllOf(HasSubstr("crumbs-0"), Not(HasSubstr("digits-0"))));
  EXPECT_THAT(newest.err, HasSubstr("study crumbs, the newest of 2 in .fettle"));
  EXPECT_THAT(shop.fettle({"status"}).out, AllOf(HasSubstr("crumbs"), HasSubstr("digits")));
  EXPECT_THAT(shop.fettle({"replay"}).err, HasSubstr("study crumbs"));
}

TEST(FirstHour, AStudyInAFolderAboveIsMentioned) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  shop.write("a/b/nothing", "");
  StudyText inner;
  inner.name = "outer";
  inner.budget = "{trials: 1}";
  const std::string fettle = program_path("fettle");
  inner.script = "cd a/b; " + fettle + " status > said; " + fettle +
                 " best digits 2>> said; echo '{\"value\": 1}'";
  shop.write("inner.yaml", inner.yaml());
  ASSERT_EQ(shop.fettle({"run", "inner.yaml"}).code, 0);
  const std::string said = shop.read("a/b/said");
  EXPECT_THAT(said, HasSubstr("No studies in .fettle; there are some in ../../.fettle (-C ../..)"));
  EXPECT_THAT(said, HasSubstr("no study 'digits' in .fettle, nor any other; -C says where to look; "
                              "there are some in ../../.fettle"));
}

// The program evaluates every second epoch, and rungs are at 1, 3 and 9.
TEST(FirstHour, AProgramThatReportsAfterTheFirstRungFailsNoTrial) {
  for (const char* const search :
       {"algorithm: {name: random, seed: 1}\n  earlyStopping: {name: asha, promote: true}",
        "algorithm: {name: bohb, seed: 1}", "algorithm: {name: hyperband, seed: 1}"}) {
    Workshop shop;
    StudyText text;
    text.search = search;
    text.script =
        "for i in $(seq $FETTLE_UNTIL_STEP); do\n"
        "  [ $((i % 2)) = 1 ] || echo \"{\\\"step\\\": $i, \\\"value\\\": $FETTLE_PARAM_X}\"\n"
        "done";
    text.budget = "{trials: 12, parallelism: 3}";
    text.steps = 9;
    shop.write("study.yaml", text.yaml());
    const Finished done = shop.fettle({"run", "study.yaml"});
    EXPECT_EQ(done.code, 0) << search << done.out << done.err;
    EXPECT_THAT(done.out, HasSubstr("12 trials: ")) << search;
    EXPECT_THAT(done.out, HasSubstr(", 0 failed")) << search << done.out;
    EXPECT_THAT(shop.fettle({"status", "digits", "--events"}).out,
                HasSubstr("trials first report at step 2"))
        << search;
    const Finished replayed = shop.fettle({"replay", "digits"});
    EXPECT_EQ(replayed.code, 0) << search << replayed.out;
  }
}

// The study's end is recorded, and a corrected program alone does not change it.
TEST(FirstHour, AStudyThatHasFailedTellsHowToGoOn) {
  Workshop shop;
  StudyText text;
  text.script = "exit 3";
  text.budget = "{trials: 4, parallelism: 2, failures: 0}";
  shop.write("study.yaml", text.yaml());
  const Finished first = shop.fettle({"run", "study.yaml"});
  EXPECT_THAT(first.out, HasSubstr("Once its cause is corrected: fettle run study.yaml --fresh"));
  const Finished again = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(again.code, first.code);
  EXPECT_THAT(again.err, HasSubstr("study digits has failed already, and nothing is run now. To go "
                                   "on, raise spec.budget.failures in study.yaml; to begin anew: "
                                   "fettle run study.yaml --fresh"));
  text.budget = "{trials: 4, parallelism: 2, failures: 4}";
  shop.write("study.yaml", text.yaml());
  EXPECT_THAT(shop.fettle({"run", "study.yaml"}).err, HasSubstr("going on with study digits"));
}

// A single trial runs to the end to find out; a trial that paused beside it fails with it. The
// fourth trial would otherwise fail with the third one, sometimes at once.
TEST(FirstHour, AProgramThatNeverReportsIsFoundOutByOneTrial) {
  Workshop shop;
  StudyText text;
  text.script = "[ $FETTLE_TRIAL_NAME != digits-3 ] || exec sleep 600\nsleep 1.2; echo epoch done";
  text.budget = "{trials: 12, parallelism: 2, failures: 2}";
  text.steps = 9;
  text.search += "\n  earlyStopping: {name: asha, promote: true}";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("3 trials failed, 2 are accepted"));
  EXPECT_THAT(done.out, HasSubstr("digits-1 failed: "));
  EXPECT_THAT(done.out, HasSubstr("exited with 0 but reported no metric"));
}

}  // namespace
}  // namespace fettle::e2e
