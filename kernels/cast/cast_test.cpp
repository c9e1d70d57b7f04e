// Conversions and sums of every backend.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

void round(Backend& tested, DataType type, const Floats& from, std::vector<std::uint16_t>& to) {
  tested.round(type, std::ssize(from), from.data(), to.data());
  tested.wait();
}

void widen(Backend& tested, DataType type, const std::vector<std::uint16_t>& from, Floats& to) {
  tested.widen(type, std::ssize(from), from.data(), to.data());
  tested.wait();
}

double sum_of_squares(Backend& tested, const Floats& values) {
  double sum = -1;
  tested.sum_of_squares(std::ssize(values), values.data(), &sum);
  tested.wait();
  return sum;
}

class Cast : public ::testing::TestWithParam<std::string> {};

TEST_P(Cast, RoundsToNearestEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Floats from = {1,           1 + 0x1p-8F, 1 + 0x3p-8F, 1 + 0x1.8p-8F,
                       -3.3895e38F, 3.4e38F,     -infinity,   0x1p-149F};
  std::vector<std::uint16_t> bits(from.size());
  Floats back(from.size());
  const auto tested = backend(GetParam());
  round(*tested, DataType::kBFloat16, from, bits);
  widen(*tested, DataType::kBFloat16, bits, back);
  EXPECT_THAT(back, ::testing::ElementsAre(1, 1, 1 + 0x1p-6F, 1 + 0x1p-7F, -3.3895314e38F, infinity,
                                           -infinity, 0));
}

TEST_P(Cast, KeepsNaN) {
  const Floats from(33, std::numeric_limits<float>::signaling_NaN());
  std::vector<std::uint16_t> bits(from.size());
  Floats back(from.size());
  round(*backend(GetParam()), DataType::kBFloat16, from, bits);
  widen(*backend(GetParam()), DataType::kBFloat16, bits, back);
  for (const float value : back) EXPECT_TRUE(std::isnan(value));
}

TEST_P(Cast, EveryBFloat16SurvivesTheWayThereAndBack) {
  std::vector<std::uint16_t> all, back(65536);
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    all.push_back(static_cast<std::uint16_t>(bits));
  Floats wide(all.size());
  widen(*backend(GetParam()), DataType::kBFloat16, all, wide);
  round(*backend(GetParam()), DataType::kBFloat16, wide, back);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!std::isnan(wide[i])) {
      EXPECT_EQ(back[i], all[i]);
    }
  }
}

std::uint16_t half_of(Backend& tested, float value) {
  std::uint16_t bits = 0;
  tested.round(DataType::kFloat16, 1, &value, &bits);
  tested.wait();
  return bits;
}

TEST_P(Cast, EveryFloat16SurvivesTheWayThereAndBack) {
  const auto tested = backend(GetParam());
  std::vector<std::uint16_t> all, back(65536);
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    all.push_back(static_cast<std::uint16_t>(bits));
  Floats wide(all.size());
  widen(*tested, DataType::kFloat16, all, wide);
  round(*tested, DataType::kFloat16, wide, back);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_nan = (all[i] & 0x7FFF) > 0x7C00;
    EXPECT_EQ(std::isnan(wide[i]), is_nan);
    if (is_nan) {
      EXPECT_GT(back[i] & 0x7FFF, 0x7C00);  // a NaN; a GPU keeps neither its bits nor its sign
    } else {
      EXPECT_EQ(back[i], all[i]);
    }
  }
}

TEST_P(Cast, KnowsTheLandmarksOfFloat16) {
  const auto tested = backend(GetParam());
  const std::vector<std::uint16_t> bits = {0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0x8000};
  Floats wide(bits.size());
  widen(*tested, DataType::kFloat16, bits, wide);
  EXPECT_THAT(wide, ::testing::ElementsAre(0x1p-24F, 1023 * 0x1p-24F, 0x1p-14F, 1, 65504,
                                           std::numeric_limits<float>::infinity(), -0.0F));
  EXPECT_TRUE(std::signbit(wide[6]));
}

// Neighbours a and b: a below the middle, b above it, the even one in the middle.
TEST_P(Cast, RoundsToTheNearestFloat16TiesToEven) {
  const auto tested = backend(GetParam());
  for (std::uint16_t a = 0; a < 0x7C00; ++a) {
    const auto b = static_cast<std::uint16_t>(a + 1);
    Floats wide(2);
    widen(*tested, DataType::kFloat16, {a, b}, wide);
    if (b == 0x7C00) wide[1] = 65536;  // the next number if infinity did not exist
    const float middle = (wide[0] + wide[1]) / 2;
    const std::uint16_t even = a % 2 == 0 ? a : b;
    ASSERT_EQ(half_of(*tested, std::nextafter(middle, 0.0F)), a) << middle;
    ASSERT_EQ(half_of(*tested, middle), even) << middle;
    ASSERT_EQ(half_of(*tested, -middle), even | 0x8000) << -middle;
    ASSERT_EQ(half_of(*tested, std::nextafter(middle, INFINITY)), b) << middle;
  }
  EXPECT_EQ(half_of(*tested, 0x1p-149F), 0);
  EXPECT_EQ(half_of(*tested, std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(half_of(*tested, -INFINITY), 0xFC00);
}

// Sizes around vectors, warps and blocks.
TEST_P(Cast, IsTheReferenceAtEverySize) {
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    for (const std::size_t count : {1, 7, 31, 33, 1023, 1025}) {
      const Floats from = random_floats(static_cast<std::int64_t>(count), 1);
      std::vector<std::uint16_t> bits(count), expected_bits(count);
      Floats back(count);
      round(*backend(GetParam()), type, from, bits);
      round(*backend("reference"), type, from, expected_bits);
      EXPECT_EQ(bits, expected_bits);
      widen(*backend(GetParam()), type, bits, back);
      EXPECT_EQ(back, from);  // multiples of 1/64 are exact
    }
  }
}

TEST_P(Cast, SumsSquaresInDouble) {
  const auto tested = backend(GetParam());
  Floats values(1003, 1e-4F);
  values[0] = 100;
  const double small = double{1e-4F} * 1e-4F;
  EXPECT_NEAR(sum_of_squares(*tested, values), 1e4 + 1002 * small, 1e-9);
  const Floats random = random_floats(777, 1);
  EXPECT_EQ(sum_of_squares(*tested, random), sum_of_squares(*backend("reference"), random));
  values[500] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(sum_of_squares(*tested, values)));
}

INSTANTIATE_TEST_SUITE_P(, Cast, ::testing::ValuesIn(backend_names()), backend_name_of);

TEST(MakeBackend, NamesTheRequestedBackend) {
  EXPECT_THAT(make_backend("metal", 1).error().message, ::testing::HasSubstr("\"metal\""));
  EXPECT_THAT(make_backend("reference", 0).error().message, ::testing::HasSubstr("0 threads"));
}

}  // namespace
}  // namespace fettle::kernels::testing
