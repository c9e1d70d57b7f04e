// Tables of traits, and the rules derived from them.
#include "api/study/algorithm.h"

#include <gtest/gtest.h>

#include "api/fields/enum_names.h"

namespace fettle::api {
namespace {

TEST(Algorithm, NamesAndTraitsAreOfOneRow) {
  for (const AlgorithmTraits& row : all_algorithms()) {
    EXPECT_EQ(from_string<AlgorithmKind>(row.name), row.kind);
    EXPECT_EQ(traits(row.kind).name, row.name);
    EXPECT_EQ(name_of(row.kind), row.name);
  }
  EXPECT_EQ(from_string<AlgorithmKind>("tpee"), std::nullopt);
  EXPECT_EQ(name_of(StoppingKind::kNone), "none");
}

TEST(Algorithm, ListsTheAlgorithmsWithATrait) {
  EXPECT_EQ(algorithms_with<&AlgorithmTraits::population>(), "name: pbt or pb2");
  EXPECT_EQ(algorithms_with<&AlgorithmTraits::halves>(), "name: hyperband or bohb");
  EXPECT_EQ(algorithms_with<&AlgorithmTraits::walks_grid>(), "name: grid");
  EXPECT_EQ(stopping_rules_with<&StoppingTraits::compares>(), "name: median, percentile or curve");
}

TEST(Algorithm, AlgorithmsThatReplaceTrialsPauseThem) {
  for (const AlgorithmTraits& row : all_algorithms()) {
    EXPECT_LE(replaces_trials(row.kind), pauses_trials(row.kind)) << row.name;
    EXPECT_LE(row.resamples, row.population) << row.name;
    EXPECT_LE(row.uses_priors, row.learns) << row.name;
  }
  EXPECT_TRUE(pauses_trials(AlgorithmKind::kSchedule));
  EXPECT_FALSE(pauses_trials(AlgorithmKind::kAuto));
}

}  // namespace
}  // namespace fettle::api
