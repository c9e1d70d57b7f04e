// fettle doctor: its output on this machine, and on machines with GPUs.
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

class Doctor : public testing::Test {
 protected:
  Workshop shop_;
};

TEST_F(Doctor, SaysWhatThisMachineOffers) {
  const Finished done = shop_.fettle({"doctor"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, ContainsRegex("CPU .*core"));
  EXPECT_THAT(done.out, ContainsRegex("memory .* usable"));
  EXPECT_THAT(done.out, ContainsRegex("container +"));
  EXPECT_THAT(done.out, ContainsRegex("disk .* free in "));
  EXPECT_THAT(done.out, HasSubstr("backend reference: ready"));
}

TEST_F(Doctor, SaysWhatTrialsCanHaveAndWhoHasItNow) {
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

TEST_F(Doctor, SaysAsJsonWhatItSaysAsText) {
  const Finished done = shop_.fettle({"doctor", "--output", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  const Json page = *parse_json(done.out);
  const Json& machine = *page.find("machine");
  EXPECT_GT(machine.find("cpu")->find("usableCores")->as_double(), 0);
  EXPECT_GT(machine.find("memory")->find("usable")->as_integer(), 0);
  EXPECT_GT(page.find("trials")->find("trialsByOpenFiles")->as_integer(), 0);
  EXPECT_EQ(*page.find("backends")->find("reference"), Json("ready"));
  EXPECT_TRUE(page.find("warnings")->is_array());
}

TEST_F(Doctor, ADirectoryThatCannotBeWrittenIsExitCode1) {
  Finished done = shop_.fettle({"doctor", "-C", "/proc"});
  EXPECT_EQ(done.code, 1) << done.err;
  EXPECT_THAT(done.out, HasSubstr("Warning: cannot write to /proc, so no study runs there; choose "
                                  "another place: fettle -C DIR"));
  done = shop_.fettle({"doctor", "-C", "/proc", "--output", "json"});
  EXPECT_EQ(done.code, 1) << done.err;
  EXPECT_FALSE(parse_json(done.out)->find("machine")->find("disk")->find("writable")->as_boolean());
}

// Earlier versions judged a Study.
TEST_F(Doctor, AFileIsExitCode2) {
  const Finished done = shop_.fettle({"doctor", "study.yaml"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("study.yaml"));
}

TEST_F(Doctor, GpusAreThoseThatTheDriverTells) {
  setenv("LD_LIBRARY_PATH", program_path("../tests/fake_nvml").c_str(), 1);
  const Finished done = shop_.fettle({"doctor"});
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_THAT(done.out, HasSubstr("2 GPUs; driver 580.65.06, for CUDA up to 13.0"));
  EXPECT_THAT(done.out, HasSubstr("the driver will do for the trainer's CUDA backend"));
  EXPECT_THAT(done.out, HasSubstr("NVIDIA H100 80GB HBM3: 80.0 GiB, 79.0 GiB free; compute "
                                  "capability 9.0, 700 W at most, 18 NVLinks"));
  EXPECT_THAT(done.out, HasSubstr("NVIDIA H100 80GB HBM3 MIG 3g.40gb: 40.0 GiB"));
}

}  // namespace
}  // namespace fettle::e2e
