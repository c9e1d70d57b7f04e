// ReLU of every backend.
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

class Relu : public ::testing::TestWithParam<std::string> {};

TEST_P(Relu, KeepsThePositive) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    auto op = backend(GetParam())->relu(type);
    Array x(type, Floats{-2, -0.5F, 0, 0.5F, 3}), y(type, 5), dx(type, 5);
    op->forward(5, x.data(), y.data());
    EXPECT_THAT(y.floats(), ::testing::ElementsAre(0, 0, 0, 0.5F, 3));
    const Array dy(type, Floats{1, 2, 3, 4, 5});
    op->backward(5, y.data(), dy.data(), dx.data());
    EXPECT_THAT(dx.floats(), ::testing::ElementsAre(0, 0, 0, 4, 5));
  }
}

TEST_P(Relu, PassesNaNOn) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    auto op = backend(GetParam())->relu(type);
    Array x(type, Floats(40, std::numeric_limits<float>::quiet_NaN()));
    op->forward(40, x.data(), x.data());
    for (const float y : x.floats()) EXPECT_TRUE(std::isnan(y));
  }
}

TEST_P(Relu, GradientIsTheDerivative) {
  auto op = backend(GetParam())->relu(DataType::kFloat32);
  Floats x = random_floats(50, 1);
  for (float& value : x) value += 1.0F / 128;  // never within the step of the kink
  const Floats dy = random_floats(50, 2);
  Array y(DataType::kFloat32, 50), dx(DataType::kFloat32, 50);
  const auto f = [&] {
    op->forward(50, x.data(), y.data());
    return dot(y.floats(), dy);
  };
  f();
  op->backward(50, y.data(), Array(DataType::kFloat32, dy).data(), dx.data());
  expect_gradient(f, x.data(), dx.floats(), 1.0F / 256, 1e-5, "dx");
}

// Sizes around vectors, warps and blocks.
TEST_P(Relu, IsTheReferenceAtEverySize) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    for (const std::int64_t count : {1, 7, 31, 33, 1023, 1025}) {
      const Array x(type, random_floats(count, 1)), dy(type, random_floats(count, 2));
      const auto outcome = [&](ReluOp& op) {
        Array y(type, count), dx(type, count);
        op.forward(count, x.data(), y.data());
        op.backward(count, y.data(), dy.data(), dx.data());
        return std::pair(y.floats(), dx.floats());
      };
      EXPECT_EQ(outcome(*backend(GetParam())->relu(type)),
                outcome(*backend("reference")->relu(type)));
    }
  }
}

TEST_P(Relu, GradientMayBeWrittenInPlace) {
  for (const DataType type : kTypes) {
    for (const std::int64_t count : {1, 7, 31, 33, 1023, 1025}) {
      auto op = backend(GetParam())->relu(type);
      Array x(type, random_floats(count, 1)), dy(type, random_floats(count, 2)), dx(type, count);
      op->forward(count, x.data(), x.data());
      op->backward(count, x.data(), dy.data(), dx.data());
      op->backward(count, x.data(), dy.data(), dy.data());
      backend(GetParam())->wait();
      EXPECT_EQ(dy.floats(), dx.floats());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Relu, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
