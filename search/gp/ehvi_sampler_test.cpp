// Several objectives by expected hypervolume improvement: what it covers, and of what it keeps off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "search/fronts_testing.h"
#include "search/search.h"
#include "search/testing.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of the folder above

constexpr int kTrials = 60;

// The most that any of the others covers.
double best_of_others(const FrontProblem& problem, int parallel) {
  double best = 0;
  for (const char* name : {"nsga2", "tpe", "random"}) {
    best = std::max(best, median_share(name, problem, kTrials, parallel));
  }
  return best;
}

TEST(EhviSampler, CoversTheFrontOfZdt1) {
  EXPECT_GT(median_share("ehvi", zdt1(), kTrials, 1), 0.9);
  EXPECT_LT(best_of_others(zdt1(), 1), 0.4);
}

TEST(EhviSampler, CoversAConcaveFrontToo) {
  EXPECT_GT(median_share("ehvi", zdt2(), kTrials, 1), 0.8);
  EXPECT_LT(best_of_others(zdt2(), 1), 0.4);
}

TEST(EhviSampler, CoversTheFrontOfDtlz2) {
  const double share = median_share("ehvi", dtlz2(), kTrials, 1);
  EXPECT_GT(share, 0.8);
  EXPECT_GT(share, best_of_others(dtlz2(), 1) + 0.15);
}

TEST(EhviSampler, CoversItWithEightPending) {
  EXPECT_GT(median_share("ehvi", zdt1(), kTrials, 8), 0.8);
}

}  // namespace
}  // namespace fettle::search
