// The two deterministic sequences: Sobol points and keyed permutations.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "search/maths/permutation.h"
#include "search/maths/sobol_sequence.h"

namespace fettle::search {
namespace {

TEST(SobolSequence, UnscrambledPointsMatchJoeAndKuo) {
  // scipy.stats.qmc.Sobol(5, scramble=False).random(8)
  const std::vector<std::vector<double>> expected = {
      {0, 0, 0, 0, 0},
      {0.5, 0.5, 0.5, 0.5, 0.5},
      {0.75, 0.25, 0.25, 0.25, 0.75},
      {0.25, 0.75, 0.75, 0.75, 0.25},
      {0.375, 0.375, 0.625, 0.875, 0.375},
      {0.875, 0.875, 0.125, 0.375, 0.875},
      {0.625, 0.125, 0.875, 0.625, 0.625},
      {0.125, 0.625, 0.375, 0.125, 0.125},
  };
  const SobolSequence sequence(5, std::nullopt);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(sequence.at(i), expected[i]) << i;
}

// Whether each of the 2^bits elementary intervals of every shape holds exactly one of the first
// 2^bits points.
bool is_net(const SobolSequence& sequence, std::size_t x, std::size_t y, int bits) {
  for (int a = 0; a <= bits; ++a) {
    std::set<std::pair<int, int>> cells;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
      const std::vector<double> point = sequence.at(i);
      cells.insert({static_cast<int>(std::ldexp(point[x], a)),
                    static_cast<int>(std::ldexp(point[y], bits - a))});
    }
    if (cells.size() != std::size_t{1} << bits) return false;
  }
  return true;
}

TEST(SobolSequence, ScramblingKeepsTheNet) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE(is_net(SobolSequence(2, seed), 0, 1, 6)) << seed;
  }
}

TEST(SobolSequence, ScrambledCoordinatesAreUniformOverSeeds) {
  std::vector<int> counts(16, 0);
  constexpr int kSeeds = 8000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    ++counts[static_cast<std::size_t>(SobolSequence(3, seed).at(5)[2] * 16)];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - kSeeds / 16.0, 2) / (kSeeds / 16.0);
  EXPECT_LT(chi_square, 37.7);  // 15 degrees of freedom, exceeded once in a thousand
}

TEST(SobolSequence, EveryDimensionHasItsOwnPoints) {
  const SobolSequence sequence(SobolSequence::kMaxDimensions, 1);
  std::set<std::vector<double>> columns;
  std::vector<std::vector<double>> rows;
  for (std::uint64_t i = 0; i < 64; ++i) rows.push_back(sequence.at(i));
  for (std::size_t d = 0; d < SobolSequence::kMaxDimensions; ++d) {
    std::vector<double> column;
    for (const std::vector<double>& row : rows) column.push_back(row[d]);
    columns.insert(column);
  }
  EXPECT_EQ(columns.size(), SobolSequence::kMaxDimensions);
}

TEST(Permutation, VisitsEveryIndexOnce) {
  for (const std::uint64_t size : {1ULL, 2ULL, 3ULL, 7ULL, 16ULL, 17ULL, 1000ULL, 4097ULL}) {
    for (std::uint64_t key = 0; key < 5; ++key) {
      const Permutation permutation(size, key);
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < size; ++i) {
        ASSERT_LT(permutation.at(i), size);
        seen.insert(permutation.at(i));
      }
      ASSERT_EQ(seen.size(), size);
    }
  }
}

TEST(Permutation, KeysGiveDifferentOrders) {
  const Permutation a(1'000'000'000, 1);
  const Permutation b(1'000'000'000, 2);
  int same = 0;
  int ascending = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    same += a.at(i) == b.at(i);
    ascending += a.at(i) < a.at(i + 1);
  }
  EXPECT_EQ(same, 0);
  EXPECT_NEAR(ascending, 500, 80);
}

TEST(Permutation, TheLargestSizeWorks) {
  const Permutation permutation(std::uint64_t{1} << 63, 5);
  EXPECT_NE(permutation.at(0), permutation.at((std::uint64_t{1} << 63) - 1));
}

}  // namespace
}  // namespace fettle::search
