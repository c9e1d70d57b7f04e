// fettle doctor: its output on this machine, on machines with GPUs, and on studies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/test_paths.h"
#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Doctor : public testing::Test {
 protected:
  Doctor() {
    shop_.write("images", idx_file({60, 8, 8}));
    shop_.write("labels", idx_file({60}));
  }

  // Writes a Study of the built-in trainer; `more`: fields of spec.trial.
  void write_study(const std::string& layers, const std::string& more = "") {
    shop_.write("study.yaml", R"(apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: small}
spec:
  objectives: [{metric: validation_accuracy, direction: Maximize}]
  parameters:
  - {name: units, type: Integer, min: 8, max: 64, sets: "model.layers[0].units"}
  budget: {trials: 4, parallelism: 2}
  resource: {max: 2, unit: epoch}
  trial:
)" + more + R"(    trainer:
      data: {trainImages: images, trainLabels: labels}
      model: {layers: [{type: linear, units: 8}, )" +
                                  layers + R"({type: linear, units: 3}]}
)");
  }

  Workshop shop_;
};

TEST_F(Doctor, ListsTheResourcesOfThisMachine) {
  const Finished done = shop_.fettle({"doctor"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, ContainsRegex("CPU .*core"));
  EXPECT_THAT(done.out, ContainsRegex("disk .* free in .*; writes .*/s, reads .*/s"));
  EXPECT_THAT(done.out, ContainsRegex("network +loopback .*/s"));
  EXPECT_THAT(done.out, HasSubstr("backend reference: ready"));
}

TEST_F(Doctor, ListsAvailableAndClaimedResources) {
  EXPECT_THAT(shop_.fettle({"doctor"}).out,
              AllOf(ContainsRegex("for trials +[0-9.]+ cores, .* of memory, "),
                    HasSubstr("open files for "), HasSubstr("no trial runs on this machine now")));
  StudyText study;
  study.script = kUntilGo;
  study.trial = "    gracePeriod: 0.1s\n";
  study.resources = "{requests: {cpu: 500m, memory: 1Mi}}";
  study.budget = "{trials: 1, parallelism: 1}";
  const pid_t runner = shop_.run_until_begun(study, 1);
  EXPECT_THAT(shop_.fettle({"doctor"}).out,
              ContainsRegex("Studies +digits of .* \\(process " + std::to_string(runner) +
                            "\\): 1 trial with 0.5 cores, 1.00 MiB of memory"));
}

TEST_F(Doctor, NamesTheBoundOfAStudyWithTheArithmetic) {
  write_study("{type: relu}, ");
  const Finished done = shop_.fettle({"doctor", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("small, first trial: units="));
  EXPECT_THAT(done.out, HasSubstr("Memory of a worker: at least"));
  EXPECT_THAT(done.out, ContainsRegex("compute +[0-9.]+ [nmu]?s += [0-9.]+ .?FLOP / "));
  EXPECT_THAT(done.out, HasSubstr("<- binds"));
  EXPECT_THAT(done.out, Not(HasSubstr("Missing")));
}

TEST_F(Doctor, PrintsTheSameFactsAsJsonAndAsText) {
  write_study("");
  const Finished done = shop_.fettle({"doctor", "study.yaml", "--output", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  const Json page = *parse_json(done.out);
  EXPECT_GT(page.find("machine")->find("cpu")->find("usableCores")->as_double(), 0);
  const Json& found = page.find("configurations")->as_array()[0];
  EXPECT_GE(found.find("bounds")->as_array().size(), 1U);
  EXPECT_TRUE(found.find("binding")->is_string());
  EXPECT_GT(found.find("memoryOfWorker")->as_integer(), 0);
}

TEST_F(Doctor, AMissingPartIsExitCode1) {
  write_study("", "    gpu: {count: 3}\n");
  Finished done = shop_.fettle({"doctor", "study.yaml"});
  EXPECT_EQ(done.code, 1) << done.err;
  EXPECT_THAT(done.out, HasSubstr("Missing: spec.trial.gpu: each trial asks for 3"));

  shop_.write("config.json", R"({"data": {"trainImages": "nowhere", "trainLabels": "labels"},
                                 "model": {"layers": [{"type": "linear", "units": 3}]}})");
  done = shop_.fettle({"doctor", "config.json"});
  EXPECT_EQ(done.code, 1) << done.err;
  EXPECT_THAT(done.out, HasSubstr("cannot open nowhere"));
}

TEST_F(Doctor, AWrongStudyIsExitCode2) {
  write_study("{type: conv}, ");
  const Finished done = shop_.fettle({"doctor", "study.yaml"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("study.yaml:"));
  EXPECT_EQ(shop_.fettle({"doctor", "nowhere.yaml"}).code, 2);
}

TEST_F(Doctor, AnImageOfItsOwnIsNotJudged) {
  shop_.write("study.yaml", StudyText{}.yaml());
  const Finished done = shop_.fettle({"doctor", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("run a program of their own"));
}

TEST_F(Doctor, ListsTheGpusOfTheDriver) {
  setenv("LD_LIBRARY_PATH", program_path("../tests/fake_nvml").c_str(), 1);
  const Finished done = shop_.fettle({"doctor"});
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_THAT(done.out, HasSubstr("2 GPUs; driver 580.65.06, for CUDA up to 13.0"));
  EXPECT_THAT(done.out, HasSubstr("the driver will do for the trainer's CUDA backend"));
  EXPECT_THAT(done.out, HasSubstr("NVIDIA H100 80GB HBM3: 80.0 GiB, 79.0 GiB free; compute "
                                  "capability 9.0, 700 W at most, NVLink 450 GB/s each way"));
  EXPECT_THAT(done.out, HasSubstr("NVIDIA H100 80GB HBM3 MIG 3g.40gb: 40.0 GiB"));
}

}  // namespace
}  // namespace fettle::e2e
