// The fields of an Experiment but its template: their counterparts, and their notes.
#include "cli/convert/katib.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/convert/testing/test_experiments.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string spec_of(const std::string& changes, std::string_view field,
                    std::optional<std::int64_t> steps = std::nullopt) {
  const Conversion done = convert_katib(experiment(changes), {steps});
  EXPECT_EQ(said(done), "") << changes;
  return at(done.study, {"spec", field});
}

std::string said_of(const std::string& changes, std::optional<std::int64_t> steps = std::nullopt) {
  return said(convert_katib(experiment(changes), {steps}));
}

std::string parameter(const std::string& space, const std::string& type = "double") {
  return "{parameters: [{name: lr, parameterType: " + type + ", feasibleSpace: " + space + "}]}";
}

TEST(Katib, ASmallExperimentLosesNothing) {
  const Conversion done = convert_katib(experiment(), {});
  EXPECT_EQ(said(done), "");
  EXPECT_EQ(at(done.study, {"metadata"}), R"({"name":"digits","namespace":"team"})");
  EXPECT_EQ(at(done.study, {"spec", "budget"}), R"({"trials":8,"parallelism":3,"failures":8})");
}

TEST(Katib, TheBestValueCountsUnlessTheStrategyIsLatest) {
  EXPECT_EQ(spec_of("{}", "objectives"),
            R"([{"metric":"loss","direction":"Minimize","take":"Best"}])");
  const std::string objective = "{objective: {type: maximize, goal: 0.9, objectiveMetricName: a, ";
  EXPECT_EQ(spec_of(objective + "metricStrategies: [{name: a, value: latest}]}}", "objectives"),
            R"([{"metric":"a","direction":"Maximize","goal":0.9}])");
  EXPECT_THAT(said_of(objective + "metricStrategies: [{name: a, value: min}]}}"),
              StartsWith("spec.objectives[0].take: "));
}

TEST(Katib, FailuresAreCountedAsFettleCountsThem) {
  EXPECT_EQ(spec_of("{maxFailedTrialCount: 3}", "budget"),
            R"({"trials":8,"parallelism":3,"failures":2})");
  EXPECT_EQ(spec_of("{maxFailedTrialCount: 0, parallelTrialCount: 4}", "budget"),
            R"({"trials":8,"parallelism":4,"failures":0})");
  EXPECT_THAT(said_of("{maxTrialCount: null}"), StartsWith("spec.budget.trials: "));
}

TEST(Katib, RangesAndScales) {
  EXPECT_EQ(spec_of(parameter("{min: '1', max: '9'}", "int"), "parameters"),
            R"([{"name":"lr","type":"Integer","min":1,"max":9}])");
  EXPECT_EQ(spec_of(parameter("{min: '0.1', max: '1e2', distribution: logUniform}"), "parameters"),
            R"([{"name":"lr","type":"Double","min":0.1,"max":100,"scale":"Log"}])");
  EXPECT_EQ(spec_of(parameter("{min: '1', max: '9', step: '1'}", "int"), "parameters"),
            R"([{"name":"lr","type":"Integer","min":1,"max":9}])");
  EXPECT_EQ(spec_of(parameter("{min: '0', max: '0.3', step: '0.1'}"), "parameters"),
            R"([{"name":"lr","type":"Double","min":0,"max":0.3,"step":0.1}])");
}

TEST(Katib, AMaximumOffTheGridMovesToItsLastPoint) {
  const Conversion done =
      convert_katib(experiment(parameter("{min: '0.1', max: '0.35', step: '0.1'}")), {});
  EXPECT_THAT(said(done), StartsWith("spec.parameters[0].max: found 0.35"));
  EXPECT_THAT(at(done.study, {"spec", "parameters"}), HasSubstr(R"("max":0.3,)"));
}

TEST(Katib, DistributionsThatFettleLacksAreNoted) {
  EXPECT_THAT(said_of(parameter("{min: '1', max: '9', distribution: normal}")),
              StartsWith("spec.parameters[0].scale: Fettle has no normal distribution"));
  EXPECT_THAT(said_of(parameter("{min: '0', max: '9', distribution: logUniform}")),
              HasSubstr("needs a min above 0"));
  EXPECT_THAT(said_of(parameter("{min: '1', max: '9', distribution: cauchy}")),
              StartsWith("error: spec.parameters[0].feasibleSpace.distribution: "));
}

TEST(Katib, DiscreteValuesAreNumbersAndChoicesAreTexts) {
  EXPECT_EQ(spec_of(parameter("{list: ['32', '0.5']}", "discrete"), "parameters"),
            R"([{"name":"lr","type":"Categorical","values":[32,0.5]}])");
  EXPECT_EQ(spec_of(parameter("{list: ['1', '1.0']}", "discrete"), "parameters"),
            R"([{"name":"lr","type":"Categorical","values":["1","1.0"]}])");
  EXPECT_EQ(spec_of(parameter("{list: ['32', sgd]}", "categorical"), "parameters"),
            R"([{"name":"lr","type":"Categorical","values":["32","sgd"]}])");
}

TEST(Katib, SkoptsLogScaleIsKeptWhereItMatters) {
  const std::string gp = "{algorithm: {algorithmName: bayesianoptimization}, ";
  const auto range = [&](const std::string& max) {
    return gp + parameter("{min: '0.1', max: '" + max + "'}").substr(1);
  };
  EXPECT_EQ(said_of(range("1")), "");
  const Conversion wide = convert_katib(experiment(range("100")), {});
  EXPECT_THAT(said(wide), StartsWith("spec.parameters[0].scale: Katib's bayesianoptimization"));
  EXPECT_THAT(at(wide.study, {"spec", "parameters"}), HasSubstr(R"("scale":"Log")"));
}

TEST(Katib, AParameterOfAnotherAlphabetIsRenamed) {
  const Conversion done = convert_katib(
      experiment("{parameters: [{name: --l r, parameterType: int, feasibleSpace: {min: '1', max: "
                 "'2'}}], trialTemplate: {trialParameters: [{name: a, reference: --l r}], "
                 "trialSpec: {kind: Job, spec: {template: {spec: {containers: [{name: t, image: x, "
                 "args: ['${trialParameters.a}']}]}}}}}}"),
      {});
  EXPECT_THAT(said(done), StartsWith("spec.parameters[0].name: --l r is no name"));
  EXPECT_THAT(at(done.study, {"spec", "trial", "template"}), HasSubstr("$(FETTLE_PARAM_L_R)"));
}

TEST(Katib, AlgorithmsAndTheirSettings) {
  const auto with = [](const std::string& name, const std::string& settings) {
    return "{algorithm: {algorithmName: " + name + ", algorithmSettings: [" + settings + "]}}";
  };
  const std::string seed = "{name: random_state, value: '7'}";
  EXPECT_EQ(spec_of(with("random", seed), "algorithm"), R"({"name":"random","seed":7})");
  EXPECT_EQ(spec_of(with("multivariate-tpe", "{name: n_startup_trials, value: '5'}"), "algorithm"),
            R"({"name":"tpe","startupTrials":5})");
  EXPECT_EQ(spec_of(with("bayesianoptimization",
                         "{name: n_initial_points, value: '6'}, {name: base_estimator, value: GP}"),
                    "algorithm"),
            R"({"name":"gp","startupTrials":6})");
  EXPECT_EQ(spec_of(with("cmaes", "{name: restart_strategy, value: ipop}"), "algorithm"),
            R"({"name":"cmaes"})");
  EXPECT_THAT(said_of(with("cmaes", "{name: sigma, value: '1'}")),
              StartsWith("spec.algorithm: the setting sigma"));
  EXPECT_THAT(said_of(with("mine", "")),
              StartsWith("spec.algorithm: Fettle has no algorithm mine"));
  EXPECT_THAT(said_of(with("random", "{name: random_state, value: x}")), StartsWith("error: "));
}

TEST(Katib, HyperbandsResourceIsNoParameter) {
  const std::string hyperband =
      "{algorithm: {algorithmName: hyperband, algorithmSettings: [{name: r_l, value: '9'}, {name: "
      "resource_name, value: lr}, {name: eta, value: '3'}]}, ";
  const Conversion done = convert_katib(
      experiment(hyperband + "parameters: [{name: lr, parameterType: int, feasibleSpace: {min: "
                             "'1', max: '9'}}, {name: m, parameterType: int, feasibleSpace: {min: "
                             "'1', max: '2'}}]}"),
      {});
  EXPECT_EQ(at(done.study, {"spec", "resource"}), R"({"unit":"lr","min":1,"max":9})");
  EXPECT_EQ(at(done.study, {"spec", "algorithm"}), R"({"name":"hyperband","reductionFactor":3})");
  EXPECT_EQ(at(done.study, {"spec", "parameters"}),
            R"([{"name":"m","type":"Integer","min":1,"max":2}])");
  EXPECT_THAT(at(done.study, {"spec", "trial", "template"}),
              HasSubstr("--lr=$(FETTLE_UNTIL_STEP)"));
  EXPECT_THAT(said_of("{algorithm: {algorithmName: hyperband}}"), HasSubstr("needs r_l"));
}

TEST(Katib, GenerationsOfAPopulationAreSteps) {
  const Conversion done = convert_katib(
      experiment("{maxTrialCount: 30, algorithm: {algorithmName: pbt, algorithmSettings: [{name: "
                 "n_population, value: '8'}, {name: truncation_threshold, value: '0.8'}]}}"),
      {});
  EXPECT_EQ(at(done.study, {"spec", "resource"}), R"({"unit":"generation","min":1,"max":4})");
  EXPECT_EQ(at(done.study, {"spec", "algorithm"}),
            R"({"name":"pbt","quantile":0.5,"interval":1,"resampleProbability":0})");
  EXPECT_THAT(at(done.study, {"spec", "budget"}), HasSubstr(R"("trials":8,)"));
  EXPECT_THAT(said(done), HasSubstr("spec.algorithm.quantile: "));
}

TEST(Katib, MedianNeedsTheStepsOfATrial) {
  const std::string stop =
      "{earlyStopping: {algorithmName: medianstop, algorithmSettings: [{name: start_step, value: "
      "'2'}]}}";
  EXPECT_THAT(said_of(stop), HasSubstr("--steps N"));
  const Conversion done = convert_katib(experiment(stop), {10});
  EXPECT_THAT(said(done), StartsWith("spec.earlyStopping: Katib compares with the mean"));
  EXPECT_EQ(at(done.study, {"spec", "earlyStopping"}),
            R"({"name":"median","minTrials":3,"startStep":2})");
  EXPECT_EQ(at(done.study, {"spec", "resource"}), R"({"unit":"step","min":1,"max":10})");
}

TEST(Katib, CollectorsBecomeAnExpressionOrANote) {
  const auto collector = [](const std::string& spec) {
    return "{metricsCollectorSpec: " + spec + "}";
  };
  const std::string format = "source: {filter: {metricsFormat: ['(a)=(b)'";
  const Conversion one = convert_katib(experiment(collector("{" + format + "]}}}")), {});
  EXPECT_EQ(said(one), "");
  EXPECT_EQ(at(one.study, {"spec", "trial", "metrics"}), R"x({"regex":"(a)=(b)"})x");
  EXPECT_THAT(said_of(collector("{" + format + ", '(c)=(d)']}}}")),
              HasSubstr("a Study has one expression"));
  for (const char* kind : {"TensorFlowEvent", "Custom", "PrometheusMetric", "Push"}) {
    const Conversion done =
        convert_katib(experiment(collector("{collector: {kind: " + std::string(kind) + "}}")), {});
    EXPECT_THAT(said(done), HasSubstr("no collector " + std::string(kind)));
    EXPECT_EQ(at(done.study, {"spec", "trial", "metrics"}), "") << kind;
  }
}

TEST(Katib, WhatIsMissingOrOfAWrongTypeIsSaidAtOnce) {
  const std::string all = said_of(
      "{objective: 3, parameters: {a: 1}, trialTemplate: [], maxTrialCount: many, algorithm: "
      "null}");
  for (const char* part : {"spec.objective: found 3, expected a map", "spec.parameters: found ",
                           "expected a list", "spec.trialTemplate: found ",
                           "spec.maxTrialCount: found \"many\"", "spec.algorithm: is missing"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST(Katib, OtherDocumentsAreRefused) {
  EXPECT_THAT(said(convert_katib(yaml("{kind: Pod, apiVersion: v1}"), {})),
              HasSubstr("error: kind: found \"Pod\", expected Experiment"));
  EXPECT_THAT(
      said(convert_katib(yaml("{kind: Experiment, apiVersion: kubeflow.org/v1alpha3}"), {})),
      HasSubstr("error: apiVersion: found \"kubeflow.org/v1alpha3\""));
  Json nameless = experiment();
  nameless.set("metadata", Json::object());
  EXPECT_THAT(said(convert_katib(nameless, {})), HasSubstr("error: metadata.name: is missing"));
}

TEST(Katib, AnUnknownFieldIsNoted) {
  EXPECT_THAT(said_of("{colour: red}"), HasSubstr("spec: colour has no counterpart"));
}

}  // namespace
}  // namespace fettle::cli
