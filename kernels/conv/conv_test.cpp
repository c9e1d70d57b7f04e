// Convolutions of every backend: against PyTorch, finite differences and the reference.
#include <cmath>
#include <limits>

#include "kernels/testing/weighted.h"

namespace fettle::kernels::testing {
namespace {

WeightedInput input_for(const ConvShape& shape, std::int64_t samples) {
  return random_input(samples, shape.input.size(), shape.output().size(),
                      shape.kernel * shape.kernel * shape.input.channels, shape.channels);
}

std::string describe(const ConvShape& s, std::int64_t samples) {
  return std::to_string(samples) + " x " + std::to_string(s.input.height) + "x" +
         std::to_string(s.input.width) + "x" + std::to_string(s.input.channels) + " -> " +
         std::to_string(s.channels) + ", kernel " + std::to_string(s.kernel) + ", stride " +
         std::to_string(s.stride) + ", padding " + std::to_string(s.padding) +
         (s.relu ? " relu" : "");
}

class Conv : public ::testing::TestWithParam<std::string> {};

TEST_P(Conv, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("conv")) {
    const ImageShape image{integer_of(c, "height"), integer_of(c, "width"),
                           integer_of(c, "inChannels")};
    const ConvShape shape{image,
                          integer_of(c, "outChannels"),
                          integer_of(c, "kernel"),
                          integer_of(c, "stride"),
                          integer_of(c, "padding"),
                          true,
                          boolean_of(c, "relu")};
    const std::int64_t samples = integer_of(c, "samples");
    auto op = must(backend(GetParam())->conv(shape, {samples, DataType::kFloat32}));
    const WeightedInput input{samples, floats_of(c, "x"), floats_of(c, "w"), floats_of(c, "b"),
                              floats_of(c, "dy")};
    const WeightedOutput expected{floats_of(c, "y"), floats_of(c, "dx"), floats_of(c, "dw"),
                                  floats_of(c, "db")};
    expect_close(run(*op, DataType::kFloat32, input), expected, 1e-5, describe(shape, samples));
  }
}

TEST_P(Conv, GradientsAreTheDerivatives) {
  const std::vector<ConvShape> shapes = {{{4, 5, 2}, 3, 3, 1, 1, true, false},
                                         {{5, 4, 1}, 2, 3, 2, 0, true, true}};
  for (const ConvShape& shape : shapes) {
    auto op = must(backend(GetParam())->conv(shape, {2, DataType::kFloat32}));
    expect_weighted_gradients(*op, input_for(shape, 2), describe(shape, 2));
  }
}

TEST_P(Conv, AddsGradients) {
  const ConvShape shape{{7, 6, 3}, 5, 3, 1, 1, true, true};
  auto op = must(backend(GetParam())->conv(shape, {5, DataType::kFloat32}));
  const double tolerance = GetParam() == "reference" ? 0 : 1e-6;
  expect_accumulates(*op, DataType::kFloat32, input_for(shape, 5), tolerance, "7x6x3 -> 5");
}

// {height, width, in, out, kernel, stride, padding}: odd channels, and every kernel that trials
// use.
constexpr std::int64_t kShapes[][7] = {
    {28, 28, 1, 32, 3, 1, 1},  {14, 14, 32, 64, 3, 1, 1}, {28, 28, 1, 16, 5, 1, 2},
    {14, 14, 16, 32, 5, 1, 2}, {12, 12, 16, 32, 7, 1, 3}, {9, 7, 3, 17, 3, 2, 1},
    {8, 8, 17, 3, 5, 1, 0},    {6, 6, 1, 1, 3, 1, 1},     {10, 9, 17, 17, 4, 3, 2},
    {8, 8, 48, 80, 3, 1, 1},   {5, 5, 33, 20, 1, 1, 0}};

TEST_P(Conv, AgreesWithTheReference) {
  for (const auto& s : kShapes) {
    const ConvShape shape{{s[0], s[1], s[2]}, s[3], s[4], s[5], s[6], true, true};
    for (const DataType type : kTypes) {
      auto op = made_if_typed(GetParam(), type, backend(GetParam())->conv(shape, {7, type}));
      if (op == nullptr) continue;
      auto reference = must(backend("reference")->conv(shape, {7, type}));
      // Fewer samples than planned: one other size, because a GPU plans each size by itself.
      for (const std::int64_t samples : {7, 3}) {
        const WeightedInput input = input_for(shape, samples);
        expect_close(run(*op, type, input), run(*reference, type, input),
                     type == DataType::kFloat32 ? 2e-6 : 1e-2, describe(shape, samples));
      }
    }
  }
}

// A GPU uses another engine of the library in 16 bits.
TEST_P(Conv, GivesTheSameBitsForTheSameBatch) {
  const ConvShape shape{{12, 12, 8}, 24, 3, 1, 1, true, true};
  for (const DataType type : kTypes) {
    auto op = made_if_typed(GetParam(), type, backend(GetParam())->conv(shape, {6, type}));
    if (op == nullptr) continue;
    expect_same_bits(*op, type, input_for(shape, 6));
  }
}

// See Linear's test.
TEST_P(Conv, PassesNaNThroughAFusedRelu) {
  if (GetParam() == "onednn" || kOnGpu) GTEST_SKIP() << "the ReLU is a library's";
  constexpr std::int64_t kChannels = 8;
  const ConvShape shape{{4, 4, 3}, kChannels, 3, 1, 1, true, true};
  for (const DataType type : kTypes) {
    auto op = must(backend(GetParam())->conv(shape, {2, type}));
    WeightedInput input = input_for(shape, 2);
    input.bias.assign(kChannels, std::numeric_limits<float>::quiet_NaN());
    const WeightedOutput found = run(*op, type, input);
    for (const float y : found.y) EXPECT_TRUE(std::isnan(y));
    Floats sums(kChannels);  // of dy, with nothing masked
    for (std::size_t i = 0; i < input.dy.size(); ++i) sums[i % kChannels] += input.dy[i];
    EXPECT_EQ(found.db, sums);
  }
}

// A pass cannot report it. A number of samples that no caller has makes the library throw.
TEST_P(Conv, AnExceptionOfALibraryAbortsWithItsReason) {
  if (GetParam() != "onednn") GTEST_SKIP() << "no other library throws";
  const ConvShape shape{{4, 4, 3}, 8, 3, 1, 1, true, false};
  auto op = must(backend(GetParam())->conv(shape, {1, DataType::kFloat32}));
  const Array in(DataType::kFloat32, Floats(48));
  Array x(DataType::kFloat32, 48), y(DataType::kFloat32, 128), dy(DataType::kFloat32, 128);
  Floats dw(216), db(8);
  EXPECT_DEATH(op->forward(-1, in.data(), y.data()), "oneDNN cannot run this convolution");
  EXPECT_DEATH(op->backward(-1, in.data(), y.data(), dy.data(), x.data(), dw.data(), db.data()),
               "oneDNN cannot run this convolution");
}

TEST_P(Conv, RefusesAKernelThatDoesNotFit) {
  const ConvShape shape{{4, 4, 1}, 2, 7, 1, 1, true, false};
  const auto made = backend(GetParam())->conv(shape, {1, DataType::kFloat32});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message,
              ::testing::HasSubstr("a kernel of 7 does not fit an input of 6"));
}

INSTANTIATE_TEST_SUITE_P(, Conv, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
