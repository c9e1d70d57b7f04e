// The work of a step, computed by hand for a network of two layers.
#include "trainer/step/step_work.h"

#include <gtest/gtest.h>

#include "trainer/model/layer_configs.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {
namespace {

class StepWorkTest : public testing::Test {
 protected:
  StepWorkTest() {
    config_.model.layers = {linear(16), linear(4)};
    config_.training.global_batch = 8;
  }
  StepWork work(std::int64_t world_size = 1) const {
    const NetworkPlan plan = *plan_network(config_.model, {1, 1, 32}, 4);
    return plan_work(config_, plan, plan_step(config_, {world_size, 100}));
  }
  api::TrainerConfig config_;
};

TEST_F(StepWorkTest, OperationsAreThoseOfTheFormulas) {
  // Two forward, two by the weights; by the inputs only in the second layer. Times two, times 8.
  EXPECT_EQ(work().flops, 8 * 2.0 * (2 * 32 * 16 + 3 * 16 * 4));
  EXPECT_EQ(work(4).flops, work().flops / 4);
}

TEST_F(StepWorkTest, BytesAreOutputsWeightsAndTheUpdate) {
  const double parameters = 32 * 16 + 16 * 4 + 16 + 16;  // blocks begin on cache lines
  const double outputs = 8 * (16 + 4) * 4 * 5.0;
  EXPECT_EQ(work().memory_bytes, outputs + parameters * 4 * (2 + 2) + parameters * 4 * (2 + 2));
  config_.training.optimizer = api::OptimizerKind::kAdamW;
  config_.training.precision = api::Precision::kBf16;
  EXPECT_EQ(work().memory_bytes,
            outputs / 2 + parameters * (2 * 2 + 4 * 2) + parameters * (4 * (2 + 4 + 2) + 2));
  config_.training.max_per_worker = 2;  // four micro-batches read the weights four times
  EXPECT_EQ(work().memory_bytes,
            outputs / 2 + 4 * parameters * (2 * 2 + 4 * 2) + parameters * (4 * (2 + 4 + 2) + 2));
}

TEST_F(StepWorkTest, OneAloneSendsNothingAndARingSendsAlmostTwice) {
  EXPECT_EQ(work().message_bytes, 0);
  EXPECT_EQ(work().sample_bytes, 8 * 32 * 4);
  const double summed = 32 * 16 + 16 * 4 + 16 + 16 + kStepSums;
  EXPECT_EQ(work(4).message_bytes, summed * 4 * 2 * 3 / 4);
}

}  // namespace
}  // namespace fettle::trainer
