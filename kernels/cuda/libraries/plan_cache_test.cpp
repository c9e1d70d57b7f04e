#include "kernels/cuda/libraries/plan_cache.h"

#include <gtest/gtest.h>

#include <functional>

namespace fettle::kernels::cuda {
namespace {

// Plans are numbers here; counts the plans made.
struct Maker {
  int made = 0;
  std::unique_ptr<std::int64_t> operator()(std::int64_t samples) {
    ++made;
    return samples < 0 ? nullptr : std::make_unique<std::int64_t>(samples);
  }
};

constexpr auto kMost = static_cast<std::int64_t>(PlanCache<std::int64_t>::kMostPlans);

TEST(PlanCache, MakesAPlanOnce) {
  PlanCache<std::int64_t> cache;
  Maker maker;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*cache.find(128, std::ref(maker)), 128);
    EXPECT_EQ(*cache.find(96, std::ref(maker)), 96);
  }
  EXPECT_EQ(maker.made, 2);
}

TEST(PlanCache, RemembersAMissingPlan) {
  PlanCache<std::int64_t> cache;
  Maker maker;
  EXPECT_EQ(cache.find(-1, std::ref(maker)), nullptr);
  EXPECT_EQ(cache.find(-1, std::ref(maker)), nullptr);
  EXPECT_EQ(maker.made, 1);
}

TEST(PlanCache, EvictsTheLeastRecentlyUsedPlan) {
  PlanCache<std::int64_t> cache;
  Maker maker;
  for (std::int64_t samples = 0; samples < kMost; ++samples) cache.find(samples, std::ref(maker));
  cache.find(0, std::ref(maker));
  cache.find(kMost, std::ref(maker));  // drops 1
  const int made = maker.made;
  cache.find(0, std::ref(maker));
  EXPECT_EQ(maker.made, made);
  cache.find(1, std::ref(maker));
  EXPECT_EQ(maker.made, made + 1);
}

}  // namespace
}  // namespace fettle::kernels::cuda
