// fettle validate, and the answer of every command to invalid input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Validate, SummarisesAGoodFile) {
  Workshop shop;
  shop.write("good.yaml", StudyText{}.yaml());
  const Finished done = shop.fettle({"validate", "good.yaml"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(
      done.out,
      "good.yaml: ok, study digits, 1 parameter, 1 objective, 4 trials at most, 2 at once, "
      "algorithm random\n"
      "  runs on this machine only: the container of spec.trial.template has no image, which a "
      "cluster needs; add one\n");
}

TEST(Validate, WarnsOfAnExpressionThatCannotMatchNaN) {
  Workshop shop;
  StudyText text;
  text.trial = "    metrics: {regex: '(\\w+)=([\\d.]+)'}\n";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"validate", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("digits: warning: spec.trial.metrics.regex: the group of the "
                                  "value, ([\\d.]+), does not match nan or inf"));
}

// Rungs at 1, 3 and 9 of 12 epochs; the last quarter trains in 8 bits.
TEST(Validate, WarnsOfRungsBeforeATrainingIsQuantized) {
  const std::string study = R"(apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: small}
spec:
  objectives: [{metric: int8_validation_accuracy, direction: Maximize}]
  parameters: [{name: rate, type: Double, min: 0.1, max: 1, sets: training.learningRate}]
  resource: {min: 1, max: 12}
  budget: {trials: 4}
  earlyStopping: {name: asha}
  trial:
    trainer:
      data: {trainImages: a, trainLabels: b}
      model: {layers: [{type: linear, units: 10}]}
      training: {quantize: {method: qat}}
)";
  const struct {
    std::string what, by;
    bool warns;
  } cases[] = {{"", "", true},
               {"min: 1,", "min: 10,", false},
               {"{method: qat}", "{method: qat, fromEpoch: 0}", false},
               {"{method: qat}", "{method: ptq}", false},
               {"name: asha", "name: none", false},
               {"int8_validation_accuracy", "validation_accuracy", false}};
  for (const auto& [what, by, warns] : cases) {
    Workshop shop;
    shop.write("study.yaml", what.empty() ? study : replaced(study, what, by));
    const Finished done = shop.fettle({"validate", "study.yaml"});
    EXPECT_EQ(done.code, 0) << done.err;
    const std::string warning =
        "small: warning: trials are judged from epoch 1 on, but train in 8 "
        "bits only behind epoch 9 (quantize.fromEpoch)";
    EXPECT_EQ(done.err.find(warning) != std::string::npos, warns) << by << "\n" << done.err;
  }
}

TEST(Validate, ReadsStandardInput) {
  Workshop shop;
  const Finished done = shop.fettle({"validate", "-"}, StudyText{}.yaml());
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("-: ok, study digits"));
}

TEST(Validate, SaysAllErrorsOfAllFilesWithTheirPlaces) {
  Workshop shop;
  const std::string good = StudyText{}.yaml();
  shop.write("good.yaml", good);
  shop.write("bad.yaml", replaced(replaced(good, "min: 0", "min: 2"), "trials: 4", "trails: 4"));
  const Finished done = shop.fettle({"validate", "good.yaml", "bad.yaml", "missing.yaml"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.out, HasSubstr("good.yaml: ok"));
  EXPECT_THAT(done.err, HasSubstr("bad.yaml:6:"));
  EXPECT_THAT(done.err, HasSubstr("trails"));
  EXPECT_THAT(done.err, HasSubstr("trials"));
  EXPECT_THAT(done.err, HasSubstr("missing.yaml"));
}

struct BadInput {
  std::string name;
  std::string content;
  std::string said;  // part of the message
};

void PrintTo(const BadInput& input, std::ostream* out) { *out << input.name; }

class BadFile : public testing::TestWithParam<BadInput> {};

TEST_P(BadFile, IsRefusedInWordsAndLeavesNothingBehind) {
  Workshop shop;
  shop.write("study.yaml", GetParam().content);
  for (const char* command : {"validate", "run"}) {
    const Finished done = shop.fettle({command, "study.yaml"});
    EXPECT_EQ(done.code, 2) << command;
    EXPECT_THAT(done.err, HasSubstr("study.yaml")) << command;
    EXPECT_THAT(done.err, HasSubstr(GetParam().said)) << command;
    EXPECT_LT(done.err.size(), 100'000U) << command;
  }
  EXPECT_FALSE(shop.exists(".fettle"));
}

std::string with(const std::string& from, const std::string& to) {
  return replaced(StudyText{}.yaml(), from, to);
}

std::string alias_bomb() {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            "]\n";
  }
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadFile,
    testing::Values(BadInput{"NotYaml", "%PDF-1.4 \x01\x02", ""}, BadInput{"Empty", "", ""},
                    BadInput{"Unclosed", "spec: {a: [", ""},
                    BadInput{"AnotherKind", with("kind: Study", "kind: Pod"), "Pod"},
                    BadInput{"MinAboveMax", with("min: 0", "min: 5"), "spec.parameters[0]"},
                    BadInput{"LogFromZero", with("max: 1}", "max: 1, scale: Log}"),
                             "spec.parameters[0]"},
                    BadInput{"NoParallelism", with("parallelism: 2", "parallelism: 0"),
                             "spec.budget.parallelism"},
                    BadInput{"HugeNumber", with("max: 1}", "max: 1e309}"), "1e309"},
                    BadInput{"UnknownAlgorithm", with("name: random", "name: randon"), "random"},
                    BadInput{"AliasBomb", alias_bomb(), ""},
                    BadInput{"DeepNesting", std::string(200'000, '['), ""},
                    BadInput{"TooLong", std::string(10'000'000, '['), ""}),
    [](const auto& tested) { return tested.param.name; });

TEST(Validate, NamesWhereAStudyCanRunAndWhyNotElsewhere) {
  Workshop shop;
  shop.write("cluster.yaml", with("command: [/bin/sh, -c]", "image: x"));
  const Finished anywhere = shop.fettle({"validate", "cluster.yaml"});
  EXPECT_EQ(anywhere.code, 0) << anywhere.err;
  EXPECT_THAT(anywhere.out, HasSubstr("runs on a cluster only: "));
  EXPECT_THAT(anywhere.out, HasSubstr("command"));
  EXPECT_EQ(shop.fettle({"--on", "cluster", "validate", "cluster.yaml"}).code, 0);
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"--on", "local", "validate", "cluster.yaml"},
        std::vector<std::string>{"run", "cluster.yaml"}}) {
    const Finished here = shop.fettle(line);
    EXPECT_EQ(here.code, 2);
    EXPECT_THAT(here.err, HasSubstr("command"));
  }
  shop.write("both.yaml", with("- name: trial\n", "- name: trial\n          image: x\n"));
  const Finished both = shop.fettle({"validate", "both.yaml"});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("runs on this machine and on a cluster"));
  shop.write("nowhere.yaml", with("command: [/bin/sh, -c]", "tty: false"));
  EXPECT_EQ(shop.fettle({"validate", "nowhere.yaml"}).code, 2);
}

// Only its profiles know which parts a cluster offers; validate reads none.
TEST(Validate, ATrialWithAPartOfAGpuRunsOnAClusterOnly) {
  Workshop shop;
  const std::string no_image = with("  trial:\n", "  trial:\n    gpu: {fraction: 0.25}\n");
  shop.write("nowhere.yaml", no_image);
  EXPECT_EQ(shop.fettle({"validate", "nowhere.yaml"}).code, 2);
  shop.write("part.yaml",
             replaced(no_image, "- name: trial\n", "- name: trial\n          image: x\n"));
  const Finished part = shop.fettle({"validate", "part.yaml"});
  EXPECT_EQ(part.code, 0) << part.err;
  EXPECT_THAT(part.out, HasSubstr("runs on a cluster only: spec.trial.gpu"));
}

TEST(CommandLine, ExplainsItself) {
  Workshop shop;
  const Finished help = shop.fettle({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("validate"));
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
  EXPECT_THAT(help.out, Not(HasSubstr("supervise")));
  EXPECT_THAT(shop.fettle({"--version"}).out, HasSubstr("fettle 0."));
}

TEST(CommandLine, RefusesUnknownArguments) {
  Workshop shop;
  const std::vector<std::vector<std::string>> lines = {{},
                                                       {"rnu"},
                                                       {"run"},
                                                       {"run", "x.yaml", "--output", "xml"},
                                                       {"run", "x.yaml", "--parallelism", "0"},
                                                       {"validate"},
                                                       {"trials"},
                                                       {"logs"},
                                                       {"logs", "no trial"},
                                                       {"trials", "nothing"},
                                                       {"status", "../../etc"},
                                                       {"run", "missing.yaml"}};
  for (const auto& line : lines) {
    const Finished done = shop.fettle(line);
    EXPECT_EQ(done.code, 2) << testing::PrintToString(line);
    EXPECT_THAT(done.err, Not(IsEmpty())) << testing::PrintToString(line);
  }
  EXPECT_FALSE(shop.exists(".fettle"));
}

TEST(CommandLine, NamesTheStudiesThereAre) {
  Workshop shop;
  EXPECT_THAT(shop.fettle({"status"}).out, HasSubstr("No studies in .fettle"));
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  EXPECT_THAT(shop.fettle({"trials", "digts"}).err, HasSubstr("there are: digits"));
  EXPECT_THAT(shop.fettle({"status"}).out, HasSubstr("digits"));
}

}  // namespace
}  // namespace fettle::e2e
