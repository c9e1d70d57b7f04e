// Philox: the published test vectors, and draws that depend only on key and counter.
#include "base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fettle {
namespace {

// Known answers of Random123 (kat_vectors), philox4x32, 10 rounds.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, IsAFunctionOfKeyAndStream) {
  Random a(7, 1);
  Random same(7, 1);
  Random other_stream(7, 2);
  Random other_key(8, 1);
  const std::uint64_t first = a.bits64();
  EXPECT_EQ(first, same.bits64());
  EXPECT_NE(first, other_stream.bits64());
  EXPECT_NE(first, other_key.bits64());
}

TEST(Random, BelowIsUniform) {
  Random random(1);
  std::vector<int> counts(7);
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) ++counts[random.below(7)];
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 10'000.0) * (count - 10'000.0) / 10'000.0;
  EXPECT_LT(chi_squared, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  Random random(2);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.015);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
}

TEST(Random, UniformStaysBelowOne) {
  Random random(3);
  for (int i = 0; i < 100'000; ++i) {
    const double x = random.uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
  }
}

}  // namespace
}  // namespace fettle
