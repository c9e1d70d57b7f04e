// Study and Trial documents read back as they were written, for all values of their fields.
#include "api/study/study_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "api/testing/random_documents.h"
#include "api/trial/trial_json.h"

namespace fettle::api {
namespace {

TEST(StudyJson, WritingAndReadingPreserveTheDocument) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Study study = RandomDocuments(seed).study();
    const std::string text = write_study(study).dump();
    const Result<Json> parsed = parse_json(text);
    ASSERT_TRUE(parsed.ok());
    const ReadStudy read = read_study(*parsed);
    ASSERT_TRUE(read.errors.empty()) << to_string(read.errors) << "\n" << text;
    ASSERT_EQ(read.study, study) << text << "\n" << write_study(read.study).dump();
  }
}

TEST(TrialJson, WritingAndReadingPreserveTheDocument) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Trial trial = RandomDocuments(seed).trial();
    const std::string text = write_trial(trial).dump();
    const Result<Trial> read = read_trial(*parse_json(text));
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(*read, trial) << text;
  }
}

TEST(TrialJson, NonFiniteMetricsComeBackAsNaN) {
  Report report;
  report.metrics = {{"loss", std::numeric_limits<double>::infinity()}};
  const Result<Report> read = read_report(*parse_json(write_report(report).dump()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(std::isnan(read->metrics.at("loss")));
}

TEST(TrialJson, TextForPeopleIsCutAndMadeReadable) {
  Trial trial;
  trial.metadata.name = "a-1";
  trial.spec.study = "a";
  trial.status.runs.resize(1);
  trial.status.runs[0].message = std::string(4095, 'x') + "ü\xFF";
  const Result<Trial> read = read_trial(*parse_json(write_trial(trial).dump()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->status.runs[0].message, std::string(4095, 'x'));
}

TEST(TrialJson, AllErrorsAreListed) {
  const Result<Trial> read = read_trial(*parse_json(
      R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial", "metadata": {"name": "a-1"},
          "spec": {"study": "a", "index": -1, "untilStep": "x"}, "status": {"phase": "Done"}})"));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, ::testing::HasSubstr("spec.index: found -1"));
  EXPECT_THAT(read.error().message, ::testing::HasSubstr("spec.untilStep: found \"x\""));
  EXPECT_THAT(read.error().message, ::testing::HasSubstr("status.phase: found \"Done\""));
}

// Their API servers have filled in the default of that time.
TEST(StudyJson, StudiesOfEarlierVersionsSayHowTheyRun) {
  const struct {
    const char* written;
    std::optional<Execution> read;
  } cases[] = {{R"(, "execution": "Job")", Execution::kProcess},
               {R"(, "execution": "Pool")", Execution::kAuto},
               {R"(, "execution": "auto")", Execution::kAuto},
               {"", std::nullopt}};
  for (const auto& c : cases) {
    const std::string text = std::string(R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Study",
        "metadata": {"name": "a"}, "spec": {"objectives": [{"metric": "x", "direction": "Minimize"}],
        "trial": {"template": {})") +
                             c.written + "}}}";
    Json document = *parse_json(text);
    const ReadStudy read = read_study(document);
    EXPECT_EQ(read.study.spec.trial.execution, c.read) << c.written;
    for (const FieldError& error : read.errors) {
      EXPECT_EQ(to_string({error}).find("execution"), std::string::npos) << to_string({error});
    }
  }
}

TEST(StudyJson, OneAndOnePointZeroAreOneNumber) {
  Json document = write_study(RandomDocuments(1).study());
  Json* budget = document.find("spec")->find("budget");
  budget->set("trials", 30.0);
  const ReadStudy read = read_study(document);
  ASSERT_TRUE(read.errors.empty()) << to_string(read.errors);
  EXPECT_EQ(read.study.spec.budget.trials, 30);
}

TEST(StudyJson, DefaultsAreFilledIn) {
  const ReadStudy read = read_study(*parse_json(
      R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "a"},
          "spec": {"objectives": [{"metric": "loss", "direction": "Minimize", "goal": null}],
                   "parameters": [{"name": "x", "type": "Boolean"}],
                   "trial": {"template": {"spec": {"containers": [
                     {"name": "t", "command": ["true"]}]}}}}})"));
  ASSERT_TRUE(read.errors.empty()) << to_string(read.errors);
  EXPECT_EQ(read.study.spec.algorithm.name, api::AlgorithmKind::kAuto);
  EXPECT_EQ(read.study.spec.budget, Budget());
  EXPECT_EQ(read.study.spec.objectives[0].goal, std::nullopt);
}

// The first text is a pod as a Study may state it, the second as it is written, for a pod's spec
// and for the next reader.
class PodOfTheTrainer : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(PodOfTheTrainer, IsWrittenAsKubernetesWritesIt) {
  Json document = *parse_json(
      R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "a"},
          "spec": {"objectives": [{"metric": "loss", "direction": "Minimize"}],
                   "parameters": [{"name": "x", "type": "Double", "min": 0.1, "max": 1,
                                   "sets": "training.learningRate"}],
                   "trial": {"trainer": {
                     "data": {"trainImages": "a", "trainLabels": "b"},
                     "model": {"layers": [{"type": "linear", "units": 2}]}}}}})");
  document.find("spec")->find("trial")->set("pod", *parse_json(GetParam().first));
  const ReadStudy read = read_study(document);
  ASSERT_TRUE(read.errors.empty()) << to_string(read.errors);
  const Json written = write_study(read.study);
  EXPECT_EQ(written.find("spec")->find("trial")->find("pod")->dump(), GetParam().second);
  EXPECT_EQ(read_study(written).study, read.study);
}

INSTANTIATE_TEST_SUITE_P(
    , PodOfTheTrainer,
    ::testing::Values(
        std::pair{"{}", "{}"},
        std::pair{R"({"nodeSelector": {"a.b/c": "D", "e": ""}})",
                  R"({"nodeSelector":{"a.b/c":"D","e":""}})"},
        std::pair{R"({"tolerations": [{"key": "a"}, {"operator": "Exists", "value": ""}]})",
                  R"({"tolerations":[{"key":"a","operator":"Equal"},{"operator":"Exists"}]})"},
        std::pair{R"({"tolerations": [{"tolerationSeconds": 0, "effect": "NoExecute",
                                       "value": "b", "operator": "Equal", "key": "a"}]})",
                  R"({"tolerations":[{"key":"a","operator":"Equal","value":"b",)"
                  R"("effect":"NoExecute","tolerationSeconds":0}]})"},
        std::pair{R"({"priorityClassName": "low", "runtimeClassName": "nvidia"})",
                  R"({"runtimeClassName":"nvidia","priorityClassName":"low"})"},
        std::pair{R"({"labels": {"team": "vision"}, "annotations": {"a.b/c": "any: text"},
                      "resources": {"limits": {"memory": "8Gi", "cpu": 1.5}},
                      "securityContext": {"runAsUser": 1000}, "imagePullPolicy": "Never",
                      "volumes": [{"name": "data", "emptyDir": {}}],
                      "volumeMounts": [{"name": "data", "mountPath": "/fettled"}],
                      "env": [{"name": "RANKED", "value": ""}], "envFrom": [{}]})",
                  R"({"labels":{"team":"vision"},"annotations":{"a.b/c":"any: text"},)"
                  R"("securityContext":{"runAsUser":1000},)"
                  R"("volumes":[{"name":"data","emptyDir":{}}],"imagePullPolicy":"Never",)"
                  R"("resources":{"limits":{"memory":"8Gi","cpu":1.5}},)"
                  R"("volumeMounts":[{"name":"data","mountPath":"/fettled"}],)"
                  R"("env":[{"name":"RANKED","value":""}],"envFrom":[{}]})"}));

}  // namespace
}  // namespace fettle::api
