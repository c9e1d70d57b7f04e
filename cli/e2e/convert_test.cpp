// fettle convert: an Experiment that becomes a Study, which runs to its end here; and the answers
// to files that do not convert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// `more`: fields of spec, each line "  name: value\n".
std::string experiment(const std::string& name, const std::string& more = "") {
  return R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: )" +
         name + R"(}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy}
  algorithm: {algorithmName: random}
  maxTrialCount: 3
)" + more +
         R"x(  parameters:
  - {name: learning-rate, parameterType: double, feasibleSpace: {min: "0.1", max: "0.5"}}
  trialTemplate:
    primaryContainerName: train
    trialParameters:
    - {name: rate, reference: learning-rate}
    - {name: trial, reference: "${trialSpec.Name}"}
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: train
              image: example.com/train
              command: [/bin/echo, "${trialParameters.trial}: accuracy=${trialParameters.rate},"]
)x";
}

TEST(Convert, TheStudyRunsToItsEnd) {
  Workshop shop;
  shop.write("experiment.yaml", experiment("digits"));
  const Finished done = shop.fettle({"convert", "experiment.yaml", "--output", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out + done.err, "");
  const Finished run = shop.fettle({"run", "study.yaml"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json trials = shop.trials();
  ASSERT_EQ(trials.as_array().size(), 3U);
  for (const Json& trial : trials.as_array()) {
    const Json* rate = trial.find("spec")->find("parameters")->find("learning-rate");
    const Json* metrics = trial.find("status")->find("report")->find("metrics");
    EXPECT_EQ(*metrics, Json::object({{"accuracy", *rate}}));
  }
}

TEST(Convert, NotesAreSaidAndWritten) {
  Workshop shop;
  const std::string stop = "  earlyStopping: {algorithmName: medianstop}\n";
  const Finished done = shop.fettle({"convert", "-"}, experiment("digits", stop));
  EXPECT_EQ(done.code, 4);
  EXPECT_THAT(done.err, StartsWith("-:8:3: spec.earlyStopping: note: no trial is stopped early"));
  EXPECT_THAT(done.out, HasSubstr("  # note: no trial is stopped early"));
  const Finished steps = shop.fettle({"convert", "-", "--steps", "9"}, experiment("digits", stop));
  EXPECT_EQ(steps.code, 4);
  EXPECT_THAT(steps.out, HasSubstr("earlyStopping: {name: median, minTrials: 3, startStep: 4}"));
}

TEST(Convert, GoodDocumentsAreWrittenBesideBadOnes) {
  Workshop shop;
  shop.write("one.yaml", experiment("a") + "---\n" + experiment("b", "  nasConfig: {}\n"));
  shop.write("two.yaml", "a: [");
  const Finished done = shop.fettle({"convert", "one.yaml", "two.yaml", "three.yaml"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.out, HasSubstr("metadata: {name: a}"));
  EXPECT_THAT(done.err, HasSubstr("spec.nasConfig: is a search for an architecture"));
  EXPECT_THAT(done.err, HasSubstr("two.yaml:1:"));
  EXPECT_THAT(done.err, HasSubstr("three.yaml"));
}

TEST(Convert, AStudyThatIsNotValidIsNotWritten) {
  Workshop shop;
  std::string text = experiment("digits");
  text.replace(text.find("objectiveMetricName: accuracy"), 29, "objectiveMetricName: the loss");
  const Finished done = shop.fettle({"convert", "-", "--output", "study.yaml"}, text);
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err,
              StartsWith("-: Study digits: spec.objectives[0].metric: found \"the loss\""));
  EXPECT_FALSE(shop.exists("study.yaml"));
}

TEST(Convert, RefusesWhatItCannotReadOrWrite) {
  Workshop shop;
  shop.write("experiment.yaml", experiment("digits"));
  EXPECT_EQ(shop.fettle({"convert"}).code, 2);
  EXPECT_EQ(shop.fettle({"convert", "experiment.yaml", "--from", "optuna"}).code, 2);
  EXPECT_EQ(shop.fettle({"convert", "experiment.yaml", "--steps", "0"}).code, 2);
  const Finished same =
      shop.fettle({"convert", "experiment.yaml", "--output", "./experiment.yaml"});
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.err, HasSubstr("one of the files to convert"));
  EXPECT_EQ(shop.fettle({"convert", "experiment.yaml", "--output", "none/study.yaml"}).code, 3);
  EXPECT_EQ(shop.read("experiment.yaml"), experiment("digits"));
}

}  // namespace
}  // namespace fettle::e2e
