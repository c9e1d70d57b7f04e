// Linear layers of every backend: against PyTorch, finite differences and the reference.
#include <cmath>
#include <limits>

#include "kernels/testing/weighted.h"

namespace fettle::kernels::testing {
namespace {

WeightedInput input_for(const LinearShape& shape, std::int64_t samples) {
  return random_input(samples, shape.inputs, shape.outputs, shape.inputs, shape.outputs);
}

std::string describe(const LinearShape& shape, std::int64_t samples) {
  return std::to_string(samples) + " x " + std::to_string(shape.inputs) + " -> " +
         std::to_string(shape.outputs) + (shape.relu ? " relu" : "");
}

class Linear : public ::testing::TestWithParam<std::string> {};

TEST_P(Linear, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("linear")) {
    const LinearShape shape{integer_of(c, "inputs"), integer_of(c, "outputs"), true,
                            boolean_of(c, "relu")};
    const std::int64_t samples = integer_of(c, "samples");
    auto op = must(backend(GetParam())->linear(shape, {samples, DataType::kFloat32}));
    const WeightedInput input{samples, floats_of(c, "x"), floats_of(c, "w"), floats_of(c, "b"),
                              floats_of(c, "dy")};
    const WeightedOutput expected{floats_of(c, "y"), floats_of(c, "dx"), floats_of(c, "dw"),
                                  floats_of(c, "db")};
    expect_close(run(*op, DataType::kFloat32, input), expected, 1e-5, describe(shape, samples));
  }
}

TEST_P(Linear, GradientsAreTheDerivatives) {
  for (const bool relu : {false, true}) {
    const LinearShape shape{5, 4, true, relu};
    auto op = must(backend(GetParam())->linear(shape, {3, DataType::kFloat32}));
    expect_weighted_gradients(*op, input_for(shape, 3), describe(shape, 3));
  }
}

TEST_P(Linear, AddsGradients) {
  const LinearShape shape{33, 18, true, true};
  auto op = must(backend(GetParam())->linear(shape, {9, DataType::kFloat32}));
  const double tolerance = GetParam() == "reference" ? 0 : 1e-6;
  expect_accumulates(*op, DataType::kFloat32, input_for(shape, 9), tolerance, "33 -> 18");
}

TEST_P(Linear, WorksWithoutBias) {
  const LinearShape shape{8, 3, false, false};
  auto op = must(backend(GetParam())->linear(shape, {2, DataType::kFloat32}));
  const Floats weights = random_floats(24, 1), x = random_floats(16, 2);
  const Array w(DataType::kFloat32, weights), input(DataType::kFloat32, x);
  Array y(DataType::kFloat32, 6), dy(DataType::kFloat32, random_floats(6, 3));
  Floats dw(24);
  op->set_weights({w.data()});
  op->forward(2, input.data(), y.data());
  op->backward(2, input.data(), y.data(), dy.data(), nullptr, dw.data(), nullptr);
  float first = 0;
  for (std::size_t i = 0; i < 8; ++i) first += x[i] * weights[i];
  EXPECT_FLOAT_EQ(y.floats()[0], first);
}

// As the head of a GPT with a frozen embedding.
TEST_P(Linear, FrozenWeightsHaveNoGradient) {
  const LinearShape shape{64, 33, false, false};
  auto op = must(backend(GetParam())->linear(shape, {5, DataType::kFloat32}));
  const Array w(DataType::kFloat32, random_floats(64 * 33, 1));
  const Array x(DataType::kFloat32, random_floats(5 * 64, 2));
  Array y(DataType::kFloat32, 5 * 33), dy(DataType::kFloat32, random_floats(5 * 33, 3));
  Array dx(DataType::kFloat32, 5 * 64), expected(DataType::kFloat32, 5 * 64);
  Floats dw(64 * 33);
  op->set_weights({w.data()});
  op->forward(5, x.data(), y.data());
  op->backward(5, x.data(), y.data(), dy.data(), dx.data(), nullptr, nullptr);
  op->backward(5, x.data(), y.data(), dy.data(), expected.data(), dw.data(), nullptr);
  EXPECT_EQ(dx.floats(), expected.floats());
}

// Odd sizes, single rows, and fewer samples than the plan's maximum, all with one op.
TEST_P(Linear, AgreesWithTheReference) {
  for (const auto& [inputs, outputs] : {std::pair{1, 1},
                                        {17, 3},
                                        {3, 17},
                                        {64, 48},
                                        {130, 10},
                                        {784, 100},
                                        {100, 260},
                                        {512, 512}}) {
    for (const DataType type : kTypes) {
      const LinearShape shape{inputs, outputs, true, true};
      auto op = made_if_typed(GetParam(), type, backend(GetParam())->linear(shape, {128, type}));
      if (op == nullptr) continue;
      auto reference = must(backend("reference")->linear(shape, {128, type}));
      for (const std::int64_t samples : {128, 1, 33}) {
        const WeightedInput input = input_for(shape, samples);
        expect_close(run(*op, type, input), run(*reference, type, input),
                     type == DataType::kFloat32 ? 2e-6 : 1e-2, describe(shape, samples));
      }
    }
  }
}

TEST_P(Linear, GivesTheSameBitsForTheSameBatch) {
  const LinearShape shape{72, 96, true, true};
  for (const DataType type : kTypes) {  // a GPU uses another kernel of the library in 16 bits
    auto op = made_if_typed(GetParam(), type, backend(GetParam())->linear(shape, {600, type}));
    if (op == nullptr) continue;
    expect_same_bits(*op, type, input_for(shape, 600));
  }
}

// A diverged network must look diverged. A library's fused ReLU may treat NaN in its own way.
TEST_P(Linear, PassesNaNThroughAFusedRelu) {
  if (GetParam() == "onednn" || kOnGpu) GTEST_SKIP() << "the ReLU is a library's";
  constexpr std::int64_t kOutputs = 8;
  const LinearShape shape{16, kOutputs, true, true};
  for (const DataType type : kTypes) {
    auto op = must(backend(GetParam())->linear(shape, {3, type}));
    WeightedInput input = input_for(shape, 3);
    input.bias.assign(kOutputs, std::numeric_limits<float>::quiet_NaN());
    const WeightedOutput found = run(*op, type, input);
    for (const float y : found.y) EXPECT_TRUE(std::isnan(y));
    Floats sums(kOutputs);  // of dy, with nothing masked
    for (std::size_t i = 0; i < input.dy.size(); ++i) sums[i % kOutputs] += input.dy[i];
    EXPECT_EQ(found.db, sums);
  }
}

TEST_P(Linear, RefusesShapesWithoutSense) {
  const auto made = backend(GetParam())->linear({0, 5, true, false}, {1, DataType::kFloat32});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("inputs of a linear layer is 0"));
}

INSTANTIATE_TEST_SUITE_P(, Linear, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
