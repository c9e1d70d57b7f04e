#include "trainer/model/initial_values.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

#include "base/philox.h"

namespace fettle::trainer {
namespace {

constexpr std::int64_t kBefore = 5;
constexpr std::int64_t kCount = (1 << 18) + 3;  // odd, so that threads begin within a block
constexpr std::uint64_t kKey = 0x123456789ABCDEF0;

std::vector<float> drawn(const Block& block, std::uint64_t stream, std::int64_t threads) {
  std::vector<float> all(kBefore + kCount + 1, -7);
  draw_initial(block, kKey, stream, threads, all.data());
  return all;
}

// Sequential draws, as in networks made before threads were used: their bits must not change, or a
// seed would no longer name the same training.
TEST(InitialValues, AreThoseOfOneStreamForAnyNumberOfThreads) {
  const Block uniform{.offset = kBefore, .count = kCount, .bound = 0.25};
  const Block normal{.offset = kBefore, .count = kCount, .deviation = 0.02};
  for (const Block& block : {uniform, normal}) {
    std::vector<float> expected(kBefore + kCount + 1, -7);
    Random random(kKey, 4);
    for (std::int64_t i = 0; i < kCount; ++i) {
      expected[kBefore + i] =
          static_cast<float>(block.deviation > 0 ? block.deviation * random.normal()
                                                 : (2 * random.uniform() - 1) * block.bound);
    }
    for (const std::int64_t threads : {1, 2, 3, 16}) {
      EXPECT_EQ(drawn(block, 4, threads), expected) << threads << " threads";
    }
  }
}

TEST(InitialValues, OfABlockThatIsNotDrawnAreItsFill) {
  const std::vector<float> all = drawn({.offset = kBefore, .count = 3, .fill = 1}, 0, 16);
  EXPECT_EQ(all[kBefore - 1], -7);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(all[kBefore + i], 1);
  EXPECT_EQ(all[kBefore + 3], -7);
}

TEST(InitialValues, AreDrawnByNoMoreThreadsThanTheProcessMayUse) {
  cpu_set_t before, one;
  CPU_ZERO(&one);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(threads_for_drawing(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace fettle::trainer
