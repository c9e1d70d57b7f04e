// Conversions and sums of every backend.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

class Cast : public ::testing::TestWithParam<std::string> {};

TEST_P(Cast, RoundsToNearestEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Floats from = {1,           1 + 0x1p-8F, 1 + 0x3p-8F, 1 + 0x1.8p-8F,
                       -3.3895e38F, 3.4e38F,     -infinity,   0x1p-149F};
  std::vector<std::uint16_t> bits(from.size());
  Floats back(from.size());
  const auto tested = backend(GetParam());
  tested->to_bfloat16(from, bits.data());
  tested->to_float32(bits, back.data());
  EXPECT_THAT(back, ::testing::ElementsAre(1, 1, 1 + 0x1p-6F, 1 + 0x1p-7F, -3.3895314e38F, infinity,
                                           -infinity, 0));
}

TEST_P(Cast, KeepsNaN) {
  const Floats from(33, std::numeric_limits<float>::signaling_NaN());
  std::vector<std::uint16_t> bits(from.size());
  Floats back(from.size());
  backend(GetParam())->to_bfloat16(from, bits.data());
  backend(GetParam())->to_float32(bits, back.data());
  for (const float value : back) EXPECT_TRUE(std::isnan(value));
}

TEST_P(Cast, EveryBFloat16SurvivesTheWayThereAndBack) {
  std::vector<std::uint16_t> all, back(65536);
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    all.push_back(static_cast<std::uint16_t>(bits));
  Floats wide(all.size());
  backend(GetParam())->to_float32(all, wide.data());
  backend(GetParam())->to_bfloat16(wide, back.data());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!std::isnan(wide[i])) {
      EXPECT_EQ(back[i], all[i]);
    }
  }
}

TEST_P(Cast, SumsSquaresInDouble) {
  const auto tested = backend(GetParam());
  Floats values(1003, 1e-4F);
  values[0] = 100;
  const double small = double{1e-4F} * 1e-4F;
  EXPECT_NEAR(tested->sum_of_squares(values), 1e4 + 1002 * small, 1e-9);
  const Floats random = random_floats(777, 1);
  EXPECT_EQ(tested->sum_of_squares(random), backend("reference")->sum_of_squares(random));
  values[500] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(tested->sum_of_squares(values)));
}

INSTANTIATE_TEST_SUITE_P(, Cast, ::testing::ValuesIn(backend_names()), backend_name_of);

TEST(MakeBackend, NamesWhatItWasAskedFor) {
  EXPECT_THAT(make_backend("cuda", 1).error().message, ::testing::HasSubstr("\"cuda\""));
  EXPECT_THAT(make_backend("reference", 0).error().message, ::testing::HasSubstr("0 threads"));
}

}  // namespace
}  // namespace fettle::kernels::testing
