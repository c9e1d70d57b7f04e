// Errors of machines whose GPU cannot be used, and the GPUs that can.
#include "kernels/cuda/runtime/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kInsufficientDriver = 35;
constexpr int kNoDevice = 100;

MachineFacts h100() {
  MachineFacts facts;
  facts.driver_version = 13000;
  facts.runtime_version = 13000;
  facts.devices = 1;
  facts.name = "NVIDIA H100";
  facts.major = 9;
  return facts;
}

std::string reason(const MachineFacts& facts) {
  const Status status = check_machine(facts, "90a-real");
  return status.ok() ? "" : status.error().message;
}

TEST(Machine, TakesAnH100) { EXPECT_EQ(reason(h100()), ""); }

TEST(Machine, WithoutADriverHasNoGpu) {
  MachineFacts facts;
  facts.error = kInsufficientDriver;
  facts.runtime_version = 13000;
  EXPECT_THAT(reason(facts), AllOf(HasSubstr("no GPU"), HasSubstr("no NVIDIA driver")));
}

TEST(Machine, WithADriverAndNoCardHasNoGpu) {
  MachineFacts facts = h100();
  facts.devices = 0;
  facts.error = kNoDevice;
  EXPECT_THAT(reason(facts), AllOf(HasSubstr("no GPU"), HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(Machine, NeedsADriverAsNewAsTheToolkit) {
  MachineFacts facts = h100();
  facts.error = kInsufficientDriver;
  facts.driver_version = 12040;
  EXPECT_THAT(reason(facts), AllOf(HasSubstr("CUDA 12.4"), HasSubstr("expected 13.0"),
                                   HasSubstr("update the driver, to 580 or newer")));
}

TEST(Machine, PassesOnOtherErrorsOfTheRuntime) {
  MachineFacts facts = h100();
  facts.error = 999;
  facts.error_text = "unknown error";
  EXPECT_THAT(reason(facts), HasSubstr("unknown error (CUDA error 999)"));
}

TEST(Machine, NeedsACardThatTheCodeWasCompiledFor) {
  MachineFacts facts = h100();
  facts.name = "NVIDIA A100";
  facts.major = 8;
  EXPECT_THAT(reason(facts), AllOf(HasSubstr("NVIDIA A100"), HasSubstr("compute capability 8.0"),
                                   HasSubstr("this build is for 90a-real"),
                                   HasSubstr("-DCMAKE_CUDA_ARCHITECTURES=80")));
}

struct Capability {
  const char* architectures;
  int major;
  int minor;
  bool runs;
};

TEST(Machine, KnowsTheArchitecturesThatRunOnACard) {
  const Capability capabilities[] = {
      {"80-real", 8, 0, true},
      {"80-real", 8, 9, true},  // later minors
      {"86-real", 8, 0, false},
      {"80-real", 9, 0, false},  // neither earlier minors nor other majors
      {"90a-real", 9, 0, true},
      {"90a-real", 10, 0, false},
      {"100f-real", 10, 3, true},
      {"100f-real", 12, 0, false},
      {"100", 12, 0, true},
      {"90-virtual", 12, 0, true},  // through PTX
      {"100", 9, 0, false},
      {"80-real,90a-real,100", 9, 0, true},
      {"", 9, 0, false},
  };
  for (const auto& [architectures, major, minor, runs] : capabilities) {
    EXPECT_EQ(runs_on(architectures, major, minor), runs)
        << architectures << " on " << major << "." << minor;
  }
}

}  // namespace
}  // namespace fettle::kernels::cuda
