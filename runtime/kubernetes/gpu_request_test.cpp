#include "runtime/kubernetes/gpu_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::kubernetes {
namespace {

using testing::HasSubstr;

using Amount = std::optional<double>;

api::TrialTemplate asking_for(std::optional<std::int64_t> count, Amount fraction, Amount memory,
                              std::int64_t workers = 1) {
  api::TrialTemplate trial;
  trial.gpu = api::Gpu{count, fraction, memory};
  trial.workers.max = workers;
  return trial;
}

TEST(GpuRequest, ACpuTrialAsksForNothing) {
  EXPECT_EQ(request_gpus(api::TrialTemplate()).value(), std::nullopt);
}

TEST(GpuRequest, WholeGpusAreAnExtendedResource) {
  EXPECT_EQ(request_gpus(asking_for(2, {}, {}, 4)).value(), (GpuRequest{"nvidia.com/gpu", 2}));
  EXPECT_EQ(request_gpus(asking_for({}, {}, {})).value(), (GpuRequest{"nvidia.com/gpu", 1}));
}

TEST(GpuRequest, SharesAreRefusedInWords) {
  const auto fraction = request_gpus(asking_for({}, 0.25, {}));
  ASSERT_FALSE(fraction.ok());
  EXPECT_EQ(fraction.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(fraction.error().message, HasSubstr("found fraction 0.25"));
  EXPECT_THAT(fraction.error().message, HasSubstr("use count: 1"));
  const auto memory = request_gpus(asking_for({}, {}, 20.0 * (1 << 30)));
  ASSERT_FALSE(memory.ok());
  EXPECT_THAT(memory.error().message, HasSubstr("found memory 20Gi"));
}

TEST(GpuRequest, SharesWithSeveralWorkersAreRefusedWhateverTheClusterCanDo) {
  const auto refused = request_gpus(asking_for({}, 0.5, {}, 2));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("up to 2 workers"));
}

}  // namespace
}  // namespace fettle::kubernetes
