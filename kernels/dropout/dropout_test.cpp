// Dropout of every backend.
#include <algorithm>
#include <numeric>

#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

using Indices = std::vector<std::int64_t>;

// DropoutKey with the epoch by value.
struct Key {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t layer = 0;
  DropoutKey pointing() const { return {seed, &epoch, layer}; }
};

Floats forward(DropoutOp& op, const Indices& indices, const Key& key, const Floats& x,
               DataType type = DataType::kFloat32) {
  const Array input(type, x);
  Array y(type, static_cast<std::int64_t>(x.size()));
  op.forward(std::ssize(indices), indices.data(), key.pointing(), input.data(), y.data());
  return y.floats();
}

class Dropout : public ::testing::TestWithParam<std::string> {};

TEST_P(Dropout, DropsTheRateAndScalesTheRest) {
  auto op = backend(GetParam())->dropout(0.25F, 10007, DataType::kFloat32);
  const Floats y = forward(*op, {5}, {1, 2, 3}, Floats(10007, 3));
  const auto dropped = std::count(y.begin(), y.end(), 0.0F);
  EXPECT_NEAR(static_cast<double>(dropped) / 10007, 0.25, 0.015);
  EXPECT_EQ(dropped + std::count(y.begin(), y.end(), 4.0F), 10007);
}

TEST_P(Dropout, DependsOnTheSampleAndNotOnTheBatch) {
  auto op = backend(GetParam())->dropout(0.5F, 37, DataType::kFloat32);
  const Key key{9, 4, 2};
  const Floats together = forward(*op, {8, 70000000001}, key, Floats(74, 1));
  Floats apart = forward(*op, {8}, key, Floats(37, 1));
  const Floats second = forward(*op, {70000000001}, key, Floats(37, 1));
  apart.insert(apart.end(), second.begin(), second.end());
  EXPECT_EQ(together, apart);
}

TEST_P(Dropout, EveryPartOfTheKeyMatters) {
  auto op = backend(GetParam())->dropout(0.5F, 64, DataType::kFloat32);
  const Floats x(64, 1);
  const Floats base = forward(*op, {1}, {1, 1, 1}, x);
  EXPECT_NE(base, forward(*op, {2}, {1, 1, 1}, x));
  EXPECT_NE(base, forward(*op, {1 + (std::int64_t{1} << 32)}, {1, 1, 1}, x));
  EXPECT_NE(base, forward(*op, {1}, {2, 1, 1}, x));
  EXPECT_NE(base, forward(*op, {1}, {1, 2, 1}, x));
  EXPECT_NE(base, forward(*op, {1}, {1, 1, 2}, x));
  EXPECT_EQ(base, forward(*op, {1}, {1, 1, 1}, x));
}

TEST_P(Dropout, GradientIsTheDerivative) {
  auto op = backend(GetParam())->dropout(0.3F, 11, DataType::kFloat32);
  const Indices indices = {3, 4};
  const Key key{7, 0, 1};
  Floats x = random_floats(22, 1);
  const Floats dy = random_floats(22, 2);
  Array dx(DataType::kFloat32, 22);
  op->backward(std::ssize(indices), indices.data(), key.pointing(),
               Array(DataType::kFloat32, dy).data(), dx.data());
  const auto f = [&] { return dot(forward(*op, indices, key, x), dy); };
  expect_gradient(f, x.data(), dx.floats(), 1.0F / 64, 1e-4, "dx");
}

TEST_P(Dropout, IsTheSameInEveryBackendBitForBit) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    for (const std::int64_t elements : {1, 3, 17, 33, 512, 1003, 1025, 2048}) {
      auto op = backend(GetParam())->dropout(0.1F, elements, type);
      auto reference = backend("reference")->dropout(0.1F, elements, type);
      const Floats x = random_floats(3 * elements, 1);
      EXPECT_EQ(forward(*op, {0, 99, 59999}, {5, 6, 7}, x, type),
                forward(*reference, {0, 99, 59999}, {5, 6, 7}, x, type));
    }
  }
}

// More samples than a grid has rows.
TEST_P(Dropout, TakesManySmallSamples) {
  constexpr std::int64_t kSamples = 65537;
  Indices indices(kSamples);
  std::iota(indices.begin(), indices.end(), 0);
  auto op = backend(GetParam())->dropout(0.5F, 1, DataType::kFloat32);
  auto reference = backend("reference")->dropout(0.5F, 1, DataType::kFloat32);
  const Floats x(kSamples, 1);
  EXPECT_EQ(forward(*op, indices, {1, 2, 3}, x), forward(*reference, indices, {1, 2, 3}, x));
}

INSTANTIATE_TEST_SUITE_P(, Dropout, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
