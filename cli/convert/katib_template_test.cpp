// Templates of trials: kinds, placeholders, and fields that leave a pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/convert/testing/test_experiments.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;

// An Experiment whose trial is this object; `more` are fields of trialTemplate, each with a comma
// after it.
Conversion converted(const std::string& job, const std::string& more = "",
                     const std::string& spec = "") {
  return convert_katib(
      experiment("{" + spec + "trialTemplate: {" + more +
                 "trialParameters: [{name: rate, reference: lr}], trialSpec: " + job + "}}"),
      {});
}

std::string job(const std::string& container, const std::string& more = "") {
  return "{apiVersion: batch/v1, kind: Job, spec: {" + more +
         "template: {spec: {containers: [{name: t, image: x, " + container + "}]}}}}";
}

std::string trial_of(const Conversion& done, std::string_view field) {
  return at(done.study, {"spec", "trial", field});
}

TEST(KatibTemplate, PlaceholdersBecomeVariables) {
  const Conversion done = converted(job(
      "args: ['a${trialParameters.rate}b'], env: [{name: R, value: '${trialParameters.rate}'}]"));
  EXPECT_EQ(said(done), "");
  EXPECT_THAT(trial_of(done, "template"), HasSubstr("a$(FETTLE_PARAM_LR)b"));
  EXPECT_THAT(trial_of(done, "template"),
              HasSubstr(R"x({"name":"R","value":"$(FETTLE_PARAM_LR)"})x"));
}

TEST(KatibTemplate, APlaceholderThatKubernetesDoesNotReplaceIsAnError) {
  for (const char* field :
       {"image: 'x:${trialParameters.rate}'", "workingDir: '/${trialParameters.rate}'",
        "resources: {limits: {cpu: '${trialParameters.rate}'}}",
        "env: [{name: '${trialParameters.rate}', value: x}]"}) {
    const std::string text =
        "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: "
        "[{name: t, " +
        std::string(field) + "}]}}}}";
    EXPECT_THAT(said(converted(text)), HasSubstr("Kubernetes replaces a parameter only in"))
        << field;
  }
  EXPECT_THAT(said(converted(job("args: ['${trialParameters.other}']"))),
              HasSubstr("which trialParameters does not declare"));
}

TEST(KatibTemplate, AReferenceToNothingIsAnError) {
  const std::string other =
      "{trialTemplate: {trialParameters: [{name: a, reference: none}, {name: b, "
      "reference: '${trialSpec.Labels[x]}'}], trialSpec: " +
      job("args: [a]") + "}}";
  const std::string all = said(convert_katib(experiment(other), {}));
  EXPECT_THAT(all, HasSubstr("trialParameters[0].reference: found \"none\""));
  EXPECT_THAT(all, HasSubstr("trialParameters[1].reference: found \"${trialSpec.Labels[x]}\""));
}

TEST(KatibTemplate, TheNamespaceOfAnObjectWithoutOneIsAskedOfThePod) {
  Json document = experiment(
      "{trialTemplate: {trialParameters: [{name: ns, reference: '${trialSpec.Namespace}'}], "
      "trialSpec: " +
      job("args: ['${trialParameters.ns}']") + "}}");
  document.find("metadata")->erase("namespace");
  const std::string text = trial_of(convert_katib(document, {}), "template");
  EXPECT_THAT(text, HasSubstr(R"x("args":["$(KATIB_TRIAL_NAMESPACE)"])x"));
  EXPECT_THAT(text, HasSubstr(R"({"fieldPath":"metadata.namespace"})"));
}

TEST(KatibTemplate, AValueInAShellsScriptIsNoted) {
  EXPECT_THAT(said(converted(job("command: [/bin/sh, -c, 'train ${trialParameters.rate}']"))),
              HasSubstr("$FETTLE_PARAM_NAME"));
  EXPECT_THAT(said(converted(job("command: [bash, -c], args: ['train ${trialParameters.rate}']"))),
              HasSubstr("$FETTLE_PARAM_NAME"));
}

TEST(KatibTemplate, LimitsOfTheJobAreThoseOfATrial) {
  const Conversion done =
      converted(job("args: [a]", "backoffLimit: 4, activeDeadlineSeconds: 90, "));
  EXPECT_EQ(said(done), "");
  EXPECT_EQ(trial_of(done, "retries"), "4");
  EXPECT_EQ(trial_of(done, "timeout"), "\"90s\"");
  EXPECT_THAT(said(converted(job("args: [a]", "parallelism: 2, "))),
              HasSubstr("parallelism is lost"));
  EXPECT_THAT(said(converted(job("args: [a]", "podFailurePolicy: {rules: []}, "))),
              HasSubstr("podFailurePolicy has no counterpart"));
}

TEST(KatibTemplate, WholeGpusAreAskedForByTheStudy) {
  const Conversion done = converted(job("resources: {limits: {nvidia.com/gpu: 2}}"));
  EXPECT_EQ(trial_of(done, "gpu"), R"({"count":2})");
  EXPECT_THAT(trial_of(done, "template"), testing::Not(HasSubstr("gpu")));
}

TEST(KatibTemplate, QueuesOfKueueAreThoseOfTheStudy) {
  const Conversion done = converted(
      "{kind: Job, metadata: {labels: {kueue.x-k8s.io/queue-name: team}}, spec: {template: "
      "{spec: {containers: [{name: t, image: x}]}}}}");
  EXPECT_EQ(said(done), "");
  EXPECT_EQ(trial_of(done, "queue"), "\"team\"");
}

TEST(KatibTemplate, TheContainerThatTrainsComesFirst) {
  const std::string two =
      "{kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: "
      "[{name: proxy, image: p}, {name: main, image: m}]}}}}";
  const Conversion done = converted(two, "primaryContainerName: main, ");
  EXPECT_EQ(said(done), "");
  EXPECT_EQ(at(done.study, {"spec", "trial", "template", "spec"}),
            R"({"containers":[{"name":"main","image":"m"},{"name":"proxy","image":"p"}]})");
  EXPECT_THAT(said(converted(two, "primaryContainerName: other, ")),
              HasSubstr("there is no container other"));
}

TEST(KatibTemplate, WorkersAreMasterAndWorkers) {
  const std::string role = "{replicas: 2, template: {spec: {containers: [{name: t, image: x}]}}}";
  const std::string other = "{template: {spec: {containers: [{name: t, image: y}]}}}";
  const auto pytorch = [](const std::string& roles) {
    return "{kind: PyTorchJob, spec: {runPolicy: {backoffLimit: 1}, pytorchReplicaSpecs: {" +
           roles + "}}}";
  };
  const Conversion same = converted(pytorch("Worker: " + role));
  EXPECT_EQ(said(same), "");
  EXPECT_EQ(trial_of(same, "workers"), R"({"min":2,"max":2})");
  EXPECT_EQ(trial_of(same, "retries"), "1");
  const Conversion both = converted(pytorch("Master: " + other + ", Worker: " + role));
  EXPECT_THAT(said(both), HasSubstr("the Workers' template differs"));
  EXPECT_EQ(trial_of(both, "workers"), R"({"min":3,"max":3})");
  EXPECT_THAT(said(converted(pytorch("Master: {}"))), HasSubstr("expected a Master or Workers"));
}

TEST(KatibTemplate, ATrainJobNeedsItsOwnImage) {
  EXPECT_THAT(said(converted("{kind: TrainJob, spec: {runtimeRef: {name: torch}, trainer: {}}}")),
              HasSubstr("the image is in the runtime"));
}

TEST(KatibTemplate, OtherKindsAreRefusedWithWhy) {
  EXPECT_THAT(said(converted("{kind: MPIJob}")), HasSubstr("by mpirun over SSH"));
  EXPECT_THAT(said(converted("{kind: Deployment}")),
              HasSubstr("no pod template that Fettle knows"));
}

TEST(KatibTemplate, ConditionsAndRetainAreNoted) {
  const std::string usual = R"('status.conditions.#(type=="Complete")#|#(status=="True")#')";
  EXPECT_EQ(said(converted(job("args: [a]"), "successCondition: " + usual + ", ")), "");
  EXPECT_THAT(
      said(converted(job("args: [a]"), "successCondition: x, retain: true, ")),
      testing::AllOf(HasSubstr("a condition on the object is lost"), HasSubstr("retain is lost")));
}

TEST(KatibTemplate, AFileThatNoWordNamesIsToBePrinted) {
  const std::string file =
      "metricsCollectorSpec: {collector: {kind: File}, source: {fileSystemPath: "
      "{path: /out/}}}, ";
  EXPECT_THAT(said(converted(job("args: [--out=/output]"), "", file)), HasSubstr("tail -F"));
  const Conversion named = converted(job("args: [--out=/out]"), "", file);
  EXPECT_THAT(said(named), HasSubstr("/dev/stdout in place of /out/"));
  EXPECT_THAT(trial_of(named, "template"), HasSubstr("--out=/dev/stdout"));
}

}  // namespace
}  // namespace fettle::cli
