// The shapes of the 33 examples of Katib (testdata/katib), converted by the command itself: its
// exit code, the number of its notes, and the Study (testdata/studies). With
// FETTLE_UPDATE_GOLDEN=1 in the environment the Studies are written again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <ostream>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/test_paths.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"

namespace fettle::cli {
namespace {

const std::string kFolder = "cli/convert/testdata/";

struct Example {
  const char* name;
  int code;
  int notes;
  const char* said = "";  // part of standard error
};

void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }

const std::vector<Example> kExamples = {
    {"argo-workflow", kExitInvalid, 0, "pipeline of Argo"},
    {"bayesian-optimization", kExitSucceeded, 0},
    {"cma-es", kExitSucceeded, 0},
    {"custom-metrics-collector", kExitNotes, 1, "no collector Custom"},
    {"darts-cpu", kExitInvalid, 0, "architecture"},
    {"darts-gpu", kExitInvalid, 0, "architecture"},
    {"enas-cpu", kExitInvalid, 0, "architecture"},
    {"enas-gpu", kExitInvalid, 0, "architecture"},
    {"file-metrics-collector", kExitNotes, 1, "/dev/stdout in place of /katib/mnist.log"},
    {"file-metrics-collector-with-json-format", kExitNotes, 1, "/dev/stdout"},
    {"from-volume-resume", kExitSucceeded, 0},
    {"grid", kExitSucceeded, 0},
    {"hyperband", kExitNotes, 1, "FETTLE_UNTIL_STEP"},
    {"hyperopt-distribution", kExitNotes, 2, "no normal distribution"},
    {"long-running-resume", kExitSucceeded, 0},
    {"median-stop", kExitNotes, 2, "--steps N"},
    {"median-stop-with-json-format", kExitNotes, 3, "--steps N"},
    {"metrics-collection-strategy", kExitSucceeded, 0},
    {"mpijob-horovod", kExitInvalid, 0, "mpirun"},
    {"multivariate-tpe", kExitSucceeded, 0},
    {"optuna-distribution", kExitSucceeded, 0},
    {"pipeline-run", kExitInvalid, 0, "pipeline of Tekton"},
    {"pytorchjob-mnist", kExitSucceeded, 0},
    {"random", kExitSucceeded, 0},
    {"simple-pbt", kExitNotes, 2, "FETTLE_CHECKPOINTS"},
    {"sobol", kExitSucceeded, 0},
    {"tfjob-mnist-with-summaries", kExitInvalid, 0, "TF_CONFIG"},
    {"tpe", kExitSucceeded, 0},
    {"trainjob-pytorch", kExitNotes, 1, "runtime"},
    {"trial-configmap-source", kExitInvalid, 0, "kubectl get configmap trial-templates"},
    {"trial-metadata-substitution", kExitNotes, 2, "annotations of the object"},
    {"xgboost-example", kExitSucceeded, 0},
    {"xgboostjob-lightgbm", kExitInvalid, 0, "MASTER_ADDR"},
};

class KatibExample : public testing::TestWithParam<Example> {};

// Returns the exit code of the command; `said` is its standard error.
int convert(const std::string& input, const std::string& output, std::string& said) {
  std::ostringstream caught;
  std::streambuf* const before = std::cerr.rdbuf(caught.rdbuf());
  const Result<int> code = convert_command({{input}, "katib", std::nullopt, output});
  std::cerr.rdbuf(before);
  said = caught.str();
  return code.ok() ? *code : -1;
}

int count(const std::string& text, const std::string& words) {
  int found = 0;
  for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
  return found;
}

TEST_P(KatibExample, IsConvertedAsWritten) {
  const Example& example = GetParam();
  const std::string name = example.name;
  const std::string made = testing::TempDir() + "fettle-convert-" + name + ".yaml";
  std::filesystem::remove(made);
  std::string said;
  const int code = convert(source_path(kFolder + "katib/" + name + ".yaml"), made, said);
  EXPECT_EQ(code, example.code) << said;
  EXPECT_EQ(count(said, ": note: "), example.notes) << said;
  EXPECT_THAT(said, testing::HasSubstr(example.said));
  ASSERT_EQ(std::filesystem::exists(made), example.code != kExitInvalid);
  if (example.code == kExitInvalid) return;
  const std::string study = read_file(made).value();
  std::filesystem::remove(made);
  const std::string golden = source_path(kFolder + "studies/" + name + ".yaml");
  if (std::getenv("FETTLE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(golden, study).ok());
  }
  EXPECT_EQ(study, read_file(golden).value());
  EXPECT_EQ(count(study, "# note: "), example.notes) << study;
}

INSTANTIATE_TEST_SUITE_P(All, KatibExample, testing::ValuesIn(kExamples), [](const auto& tested) {
  std::string name = tested.param.name;
  std::erase(name, '-');
  return name;
});

TEST(KatibExamples, AreAllInTheTable) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path(kFolder + "katib"))) {
    const std::string name = entry.path().stem();
    const bool listed = std::ranges::any_of(
        kExamples, [&](const Example& example) { return name == example.name; });
    EXPECT_TRUE(listed) << name;
    ++files;
  }
  EXPECT_EQ(files, kExamples.size());
}

}  // namespace
}  // namespace fettle::cli
