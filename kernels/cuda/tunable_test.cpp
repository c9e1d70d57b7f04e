// What may be tuned, and which values each kernel takes.
#include "kernels/cuda/tunable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fettle::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(Tunable, EveryCandidateIsTakenAndTheUsualOneIsTheFirst) {
  for (const TunableKernel& kernel : tunable_kernels()) {
    const auto configs = candidates(kernel);
    EXPECT_EQ(configs.front(), kernel.usual) << kernel.name;
    EXPECT_EQ(std::count(configs.begin(), configs.end(), kernel.usual), 1) << kernel.name;
    for (const LaunchConfig& config : configs) {
      EXPECT_TRUE(check_config(kernel, config).ok()) << kernel.name << " " << to_text(config);
    }
  }
}

TEST(Tunable, WhoGoesRoundHasBlocksToChoose) {
  const auto update = candidates(*find_tunable("optimizer/update"));
  EXPECT_THAT(update, IsSupersetOf<LaunchConfig>({{64, 2}, {512, 16}, {128, 4}}));
  EXPECT_THAT(candidates(*find_tunable("relu/forward")),
              AllOf(Contains(LaunchConfig{512, 0}), Not(Contains(LaunchConfig{512, 4}))));
}

// Their blocks add up: with other threads the same batch would give other bits.
TEST(Tunable, SumsAreNotTuned) {
  for (const char* name :
       {"batch_norm/columns", "linear/bias_gradient", "optimizer/lamb_moments"}) {
    const auto found = find_tunable(name);
    ASSERT_FALSE(found.ok());
    EXPECT_THAT(found.error().message, AllOf(HasSubstr(name), HasSubstr("add/add, ")));
  }
}

struct Refused {
  const char* kernel;
  LaunchConfig config;
  const char* why;
};

TEST(Tunable, SaysWhatAKernelDoesNotTake) {
  const Refused all[] = {
      {"relu/forward", {100, 0}, "no blocks of 100 threads, expected a multiple of 32 up to 512"},
      {"relu/forward", {0, 0}, "no blocks of 0 threads"},
      {"relu/forward", {2048, 0}, "no blocks of 2048 threads"},
      {"relu/forward", {256, 4}, "takes no number of blocks, found 4 a multiprocessor"},
      {"optimizer/update", {256, 0}, "takes no 0 blocks a multiprocessor, expected 1 to 32"},
      {"optimizer/update", {256, 33}, "takes no 33 blocks a multiprocessor"},
  };
  for (const auto& [kernel, config, why] : all) {
    const Status status = check_config(*find_tunable(kernel), config);
    ASSERT_FALSE(status.ok()) << why;
    EXPECT_THAT(status.error().message, AllOf(HasSubstr(kernel), HasSubstr(why)));
  }
}

}  // namespace
}  // namespace fettle::kernels::cuda
