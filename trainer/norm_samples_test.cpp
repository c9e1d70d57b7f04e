#include "trainer/norm_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using ::testing::HasSubstr;

// Error for a network with batchNorm after a linear layer; with `image` before it, over many
// pixels.
std::string refusal(std::int64_t train_samples, std::int64_t batch,
                    std::optional<std::int64_t> norm_group = {}, std::int64_t workers = 1,
                    bool image = false) {
  api::TrainerConfig config;
  config.model.layers = {linear(4), simple(api::LayerType::kBatchNorm), linear(3)};
  if (image) config.model.layers.erase(config.model.layers.begin());
  config.training.global_batch = batch;
  config.training.norm_group = norm_group;
  const auto plan = plan_network(config.model, {4, 4, 1}, 3);
  EXPECT_TRUE(plan.ok());
  const Status checked =
      check_norm_samples(config, *plan, {.world_size = workers, .train_samples = train_samples});
  return checked.ok() ? "" : checked.error().message;
}

TEST(NormSamples, ALastBatchOfOneSampleHasNoVariance) {
  EXPECT_EQ(refusal(128, 128), "");
  EXPECT_EQ(refusal(130, 128), "");
  EXPECT_THAT(refusal(129, 128), HasSubstr("of 129 training samples in batches of 128 the last"));
  EXPECT_THAT(refusal(129, 128), HasSubstr("use another batch"));
}

TEST(NormSamples, NeitherHasABatchOfOne) {
  EXPECT_THAT(refusal(100, 1), HasSubstr("a group of samples would be one (batch 1)"));
  EXPECT_THAT(refusal(1, 128), HasSubstr("(batch 1)")) << "there are no more samples";
}

TEST(NormSamples, GroupsAreWhatCounts) {
  EXPECT_EQ(refusal(100, 10, 5), "");
  EXPECT_THAT(refusal(100, 10, 1), HasSubstr("normGroup 1); use a larger training.normGroup"));
  EXPECT_THAT(refusal(100, 5, 2), HasSubstr("a group of samples would be one")) << "2, 2 and 1";
  EXPECT_THAT(refusal(101, 10, 5), HasSubstr("leave a group of one"));
}

TEST(NormSamples, ASampleWithPixelsHasValuesEnough) {
  EXPECT_EQ(refusal(129, 128, {}, 1, /*image=*/true), "");
  EXPECT_EQ(refusal(100, 1, {}, 1, /*image=*/true), "");
}

TEST(NormSamples, GroupsMustNotDependOnTheNumberOfWorkers) {
  EXPECT_THAT(refusal(128, 128, {}, 2, /*image=*/true), HasSubstr("set training.normGroup"));
  EXPECT_EQ(refusal(128, 128, 64, 2, /*image=*/true), "");
}

}  // namespace
}  // namespace fettle::trainer
