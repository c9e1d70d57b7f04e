#include "trainer/data/batching.h"

#include <gtest/gtest.h>

namespace fettle::trainer {
namespace {

// The rule of the design: every sample of the batch is dealt exactly once, in order; rank r gets
// floor(B/W) + (r < B mod W) samples; no micro-batch holds more than m.
void expect_exact(std::int64_t batch, std::int64_t world_size, std::int64_t limit) {
  SCOPED_TRACE(testing::Message() << "B=" << batch << " W=" << world_size << " m=" << limit);
  const Range whole{1000, 1000 + batch};
  std::int64_t next = whole.begin;
  for (std::int64_t rank = 0; rank < world_size; ++rank) {
    const Range share = share_of(whole, world_size, rank);
    EXPECT_EQ(share.size(), batch / world_size + (rank < batch % world_size ? 1 : 0));
    const auto pieces = micro_batches(share, limit);
    EXPECT_LE(std::ssize(pieces), accumulation_steps(batch, {world_size, rank, limit}));
    for (const Range& piece : pieces) {
      EXPECT_EQ(piece.begin, next);
      EXPECT_GE(piece.size(), 1);
      EXPECT_LE(piece.size(), limit);
      next = piece.end;
    }
  }
  EXPECT_EQ(next, whole.end);
}

TEST(Batching, EverySampleIsDealtOnceForEveryWorldSizeAndLimit) {
  for (const std::int64_t batch : {128, 250, 256, 512}) {
    for (std::int64_t world_size = 1; world_size <= 16; ++world_size) {
      for (const std::int64_t limit : {16, 64}) expect_exact(batch, world_size, limit);
    }
  }
}

TEST(Batching, ThePartialBatchAtTheEndOfAnEpochIsDealtTheSameWay) {
  for (std::int64_t left = 1; left < 40; ++left) expect_exact(left, 16, 16);
}

TEST(Batching, AWorkerWithoutSamplesHasNoMicroBatches) {
  EXPECT_EQ(share_of({0, 3}, 4, 3).size(), 0);
  EXPECT_TRUE(micro_batches(share_of({0, 3}, 4, 3), 16).empty());
}

TEST(Batching, MicroBatchesAreAsFewAndAsEvenAsPossible) {
  const auto pieces = micro_batches({0, 65}, 64);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0], (Range{0, 33}));
  EXPECT_EQ(pieces[1], (Range{33, 65}));
}

// Operations are planned for this size; a plan for a size that never runs would be wasted.
TEST(Batching, AWorkerHoldsTheLargestMicroBatchThatIsRun) {
  api::TrainingConfig config;
  for (const std::int64_t batch : {1, 37, 128, 250, 256}) {
    for (const std::int64_t world_size : {1, 3, 8}) {
      for (const std::int64_t limit : {1, 16, 48, 100, 1000}) {
        SCOPED_TRACE(testing::Message() << "B=" << batch << " W=" << world_size << " m=" << limit);
        config.max_per_worker = limit;
        const std::int64_t held = max_samples_of(config, 0, batch, world_size);
        EXPECT_LE(held, limit);
        const auto pieces = deal({0, batch}, {world_size, /*rank=*/0, held});
        EXPECT_EQ(pieces.front().size(), held);
        EXPECT_EQ(std::ssize(pieces), accumulation_steps(batch, {world_size, 0, limit}));
        for (std::int64_t rest = 1; rest <= batch; ++rest) {  // the last batch of an epoch
          for (const Range& piece : deal({0, rest}, {world_size, 0, held})) {
            EXPECT_LE(piece.size(), held);
          }
        }
      }
    }
  }
  config.max_per_worker = 100;
  EXPECT_EQ(max_samples_of(config, 0, 256, 1), 86);
  EXPECT_EQ(max_samples_of(config, 16, 256, 1), 16) << "groups are micro-batches";
}

TEST(Batching, CountsSteps) {
  EXPECT_EQ(accumulation_steps(256, {.world_size = 3, .limit = 64}), 2);
  EXPECT_EQ(accumulation_steps(256, {.world_size = 4, .limit = 64}), 1);
  EXPECT_EQ(accumulation_steps(250, {.world_size = 3, .limit = 64, .norm_group = 16}), 6);
  EXPECT_EQ(steps_per_epoch(12000, 128), 94);
  EXPECT_EQ(steps_per_epoch(12032, 128), 94);
}

}  // namespace
}  // namespace fettle::trainer
