// Addition of every backend, in place and not, with a ReLU and without.
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

class Add : public ::testing::TestWithParam<std::string> {};

TEST_P(Add, AddsInEveryType) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    const Array a(type, Floats{1, -2, 0.5F, 100}), b(type, Floats{3, 2, 0.25F, -1});
    Array y(type, 4);
    backend(GetParam())->add(type, 4, a.data(), b.data(), y.data(), false);
    EXPECT_THAT(y.floats(), ::testing::ElementsAre(4, 0, 0.75F, 99));
  }
}

TEST_P(Add, MayWriteOverASummand) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    const Floats first = random_floats(77, 1), second = random_floats(77, 2);
    Array a(type, first), b(type, second), y(type, 77);
    const auto tested = backend(GetParam());
    tested->add(type, 77, a.data(), b.data(), y.data(), false);
    tested->add(type, 77, a.data(), b.data(), a.data(), false);
    EXPECT_EQ(a.floats(), y.floats());
    for (std::size_t i = 0; i < 77; ++i) EXPECT_NEAR(y.floats()[i], first[i] + second[i], 0.01);
  }
}

TEST_P(Add, WithReluKeepsThePositiveSums) {
  for (const DataType type : kTypes) {
    const Array a(type, Floats{1, -2, 0.5F, 100, -3}), b(type, Floats{3, 2, -0.75F, -1, -4});
    Array y(type, 5);
    backend(GetParam())->add(type, 5, a.data(), b.data(), y.data(), true);
    EXPECT_THAT(y.floats(), ::testing::ElementsAre(4, 0, 0, 99, 0));
  }
}

// A diverged network must look diverged.
TEST_P(Add, WithReluPassesNaNOn) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DataType type : kTypes) {
    for (const auto& [first, second] : {std::pair(kNaN, -1.0F), {-kInfinity, kInfinity}}) {
      Array a(type, Floats(40, first));
      const Array b(type, Floats(40, second));
      backend(GetParam())->add(type, 40, a.data(), b.data(), a.data(), true);
      for (const float y : a.floats()) EXPECT_TRUE(std::isnan(y)) << y;
    }
  }
}

TEST_P(Add, WithReluIsAddThenRelu) {
  for (const DataType type : kTypes) {
    for (const std::int64_t count : {1, 7, 31, 33, 1023, 1025}) {
      Array a(type, random_floats(count, 1)), b(type, random_floats(count, 2));
      Array y(type, count), expected(type, count);
      const auto tested = backend(GetParam());
      tested->add(type, count, a.data(), b.data(), expected.data(), false);
      tested->relu(type)->forward(count, expected.data(), expected.data());
      tested->add(type, count, a.data(), b.data(), y.data(), true);
      tested->add(type, count, a.data(), b.data(), b.data(), true);  // in place, too
      tested->wait();
      EXPECT_EQ(y.floats(), expected.floats());
      EXPECT_EQ(b.floats(), expected.floats());
    }
  }
}

void expect_the_reference(Backend& tested, DataType type, std::int64_t count, std::int64_t offset,
                          bool relu) {
  const Array a(type, random_floats(count + 1, 1)), b(type, random_floats(count + 1, 2));
  const auto sum = [&](Backend& backend) {
    Array y(type, count + 1);
    const std::int64_t bytes = offset * size_of(type);
    backend.add(type, count, static_cast<const std::byte*>(a.data()) + bytes,
                static_cast<const std::byte*>(b.data()) + bytes,
                static_cast<std::byte*>(y.data()) + bytes, relu);
    backend.wait();
    return y.floats();
  };
  EXPECT_EQ(sum(tested), sum(*backend("reference")));
}

// Sizes around vectors, warps and blocks; and unaligned beginnings.
TEST_P(Add, IsTheReferenceAtEverySizeAndOffset) {
  for (const DataType type : kTypes) {
    for (const std::int64_t count : {1, 7, 31, 33, 1023, 1025}) {
      for (const std::int64_t offset : {0, 1}) {
        for (const bool relu : {false, true}) {
          expect_the_reference(*backend(GetParam()), type, count, offset, relu);
        }
      }
    }
  }
}

TEST_P(Add, AddsAMultiple) {
  for (const std::int64_t count : {1, 31, 33, 1025}) {
    const Floats x = random_floats(count, 1), before = random_floats(count, 2);
    const Array part(DataType::kFloat32, x);
    Array y(DataType::kFloat32, before);
    const auto tested = backend(GetParam());
    tested->add_scaled(count, -0.5F, static_cast<const float*>(part.data()),
                       static_cast<float*>(y.data()));
    tested->wait();
    const Floats after = y.floats();
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(after[i], before[i] - x[i] / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(, Add, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
