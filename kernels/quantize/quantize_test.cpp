// Numbers on the byte grid of a range, by every backend.
#include <cmath>
#include <limits>

#include "kernels/quantize/formulas.h"
#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

using ::testing::ElementsAre;

class FakeQuantize : public ::testing::TestWithParam<std::string> {};

Floats quantized(const std::string& name, const Floats& range, const Floats& x,
                 std::size_t offset = 0) {
  const Array bounds(DataType::kFloat32, range), from(DataType::kFloat32, x);
  Array to(DataType::kFloat32, std::ssize(x));
  const auto tested = backend(name);
  tested->fake_quantize(
      std::ssize(x) - static_cast<std::int64_t>(offset), static_cast<const float*>(bounds.data()),
      static_cast<const float*>(from.data()) + offset, static_cast<float*>(to.data()) + offset);
  tested->wait();
  return to.floats();
}

// A scale of 1/2 and the zero point 10: from -5 to 122.5.
TEST_P(FakeQuantize, RoundsToNearestEvenAndKeepsWithinTheRange) {
  EXPECT_THAT(
      quantized(GetParam(), {-5, 122.5F}, {0, 0.2F, 0.25F, 0.75F, -0.25F, -5.1F, -9, 122.6F, 300}),
      ElementsAre(0, 0, 0, 1, 0, -5, -5, 122.5F, 122.5F));
}

TEST_P(FakeQuantize, HoldsZeroWhateverTheRange) {
  EXPECT_THAT(quantized(GetParam(), {3, 255}, {0, -4, 3.4F, 256}), ElementsAre(0, 0, 3, 255));
  EXPECT_THAT(quantized(GetParam(), {-255, -9}, {0, 4, -3.4F, -256}), ElementsAre(0, 0, -3, -255));
  EXPECT_THAT(quantized(GetParam(), {0, 0}, {0, 0.4F, -3}), ElementsAre(0, 0, 0));
}

TEST_P(FakeQuantize, PassesNaNOn) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const float y : quantized(GetParam(), {-1, 1}, Floats(40, kNaN))) EXPECT_TRUE(std::isnan(y));
}

// Sizes around vectors, warps and blocks; and unaligned beginnings.
TEST_P(FakeQuantize, IsTheReferenceAtEverySizeAndOffset) {
  for (const std::int64_t count : {1, 7, 31, 33, 1023, 1025}) {
    for (const std::size_t offset : {0U, 1U}) {
      const Floats x = random_floats(count + 1, 3);
      const Floats range = {-0.7F, 1.3F};
      EXPECT_EQ(quantized(GetParam(), range, x, offset), quantized("reference", range, x, offset));
    }
  }
}

TEST_P(FakeQuantize, IsTheNearestOfTheGrid) {
  const Floats x = random_floats(1000, 4);
  const Floats y = quantized(GetParam(), {-4, 4}, x);
  const float scale = byte_grid(-4, 4).scale;
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(y[i] - x[i]), scale * 0.5001F);
    EXPECT_NEAR(y[i] / scale, std::round(y[i] / scale), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(, FakeQuantize, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
