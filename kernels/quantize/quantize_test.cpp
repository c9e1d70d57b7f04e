// Numbers on 8-bit grids, the gradients that pass them and the ranges that follow them, by every
// backend.
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
  tested->fake_quantize(DataType::kFloat32, std::ssize(x) - static_cast<std::int64_t>(offset),
                        static_cast<const float*>(bounds.data()),
                        static_cast<const float*>(from.data()) + offset,
                        static_cast<float*>(to.data()) + offset);
  tested->wait();
  return to.floats();
}

Floats gradients(const std::string& name, DataType type, const Floats& range, const Floats& x,
                 const Floats& dy) {
  const Array bounds(DataType::kFloat32, range), at(type, x), from(type, dy);
  Array to(type, std::ssize(x));
  const auto tested = backend(name);
  tested->fake_quantize_backward(type, std::ssize(x), static_cast<const float*>(bounds.data()),
                                 at.data(), from.data(), to.data());
  tested->wait();
  return to.floats();
}

Floats tracked_range(const std::string& name, DataType type, const Floats& range, const Floats& x,
                     float share) {
  Array bounds(DataType::kFloat32, range);
  const Array from(type, x);
  const auto tested = backend(name);
  tested->track_range(type, std::ssize(x), from.data(), share, static_cast<float*>(bounds.data()));
  tested->wait();
  return bounds.floats();
}

Floats rounded_weights(const std::string& name, DataType type, const WeightRows& rows,
                       const Floats& x) {
  const Array from(type, x);
  Array to(type, std::ssize(x));
  const auto tested = backend(name);
  tested->fake_quantize_weights(type, rows, from.data(), to.data());
  tested->wait();
  return to.floats();
}

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kBFloat16};

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

// The scale is 1/2: the ends are rounded to from half a step beyond.
TEST_P(FakeQuantize, GradientsPassWhereTheRangeCutsNothingOff) {
  for (const DataType type : kTypes) {
    EXPECT_THAT(gradients(GetParam(), type, {-5, 122.5F}, {0, -5, 122.5F, -5.125F, -5.5F, 123, 300},
                          {1, 2, 3, 4, 5, 6, 7}),
                ElementsAre(1, 2, 3, 4, 0, 0, 0));
  }
}

TEST_P(FakeQuantize, RangesMoveToTheEndsAndHoldZero) {
  for (const DataType type : kTypes) {
    EXPECT_THAT(tracked_range(GetParam(), type, {-1, 1}, {0.5F, -3, 2}, 0.5F),
                ElementsAre(-2, 1.5));
    EXPECT_THAT(tracked_range(GetParam(), type, {-1, 1}, {3, 4}, 0.5F), ElementsAre(-0.5, 2.5));
    EXPECT_THAT(tracked_range(GetParam(), type, {0, 0}, {-3, -4}, 1), ElementsAre(-4, 0));
  }
}

// Sizes of one block, of several, and of more elements than threads; the ends anywhere.
TEST_P(FakeQuantize, RangesSeeEveryElement) {
  for (const std::int64_t count : {1, 31, 257, 5000, 40'000}) {
    Floats x(static_cast<std::size_t>(count), 0.25F);
    for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) {
      Floats changed = x;
      changed[static_cast<std::size_t>(at)] = 9;
      EXPECT_THAT(tracked_range(GetParam(), DataType::kFloat32, {0, 0}, changed, 1),
                  ElementsAre(0, 9))
          << at << " of " << count;
      changed[static_cast<std::size_t>(at)] = -9;
      const float most = count == 1 ? 0 : 0.25F;
      EXPECT_THAT(tracked_range(GetParam(), DataType::kFloat32, {0, 0}, changed, 1),
                  ElementsAre(-9, most));
    }
  }
}

TEST_P(FakeQuantize, RangesPassNaNBy) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(tracked_range(GetParam(), DataType::kFloat32, {0, 0}, {kNaN, 2, kNaN, -1}, 1),
              ElementsAre(-1, 2));
}

// Scales of 1, 2 and 1 (a row of zeros), with integers to 7.
TEST_P(FakeQuantize, WeightsHaveAScaleForEachRow) {
  for (const DataType type : kTypes) {
    EXPECT_THAT(
        rounded_weights(GetParam(), type, {3, 3, 7}, {7, -2.5F, 1.25F, -14, 3, 0.5F, 0, 0, 0}),
        ElementsAre(7, -2, 1, -14, 4, 0, 0, 0, 0));
  }
}

TEST_P(FakeQuantize, WeightsAreTheReferencesAtEveryWidth) {
  for (const std::int64_t width : {1, 9, 31, 256, 700}) {
    const WeightRows rows{.count = 5, .width = width, .limit = 127};
    const Floats x = random_floats(5 * width, 6);
    for (const DataType type : kTypes) {
      EXPECT_EQ(rounded_weights(GetParam(), type, rows, x),
                rounded_weights("reference", type, rows, x))
          << width;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, FakeQuantize, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
