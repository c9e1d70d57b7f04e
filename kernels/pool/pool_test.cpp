// Pooling of every backend: against PyTorch, finite differences and the reference.
#include <cmath>
#include <limits>

#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

struct Outcome {
  Floats y, dx;
};

Outcome run(PoolOp& op, const PoolShape& shape, DataType type, std::int64_t samples,
            const Floats& x_values, const Floats& dy_values) {
  Array x(type, x_values), dy(type, dy_values);
  Array y(type, samples * shape.output().size()), dx(type, samples * shape.input.size());
  op.forward(samples, x.data(), y.data());
  op.backward(samples, x.data(), y.data(), dy.data(), dx.data());
  return {y.floats(), dx.floats()};
}

class Pool : public ::testing::TestWithParam<std::string> {};

TEST_P(Pool, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("pool")) {
    const bool max = c.find("kind")->as_string() == "max";
    const PoolShape shape{
        max ? PoolKind::kMax : PoolKind::kAverage,
        {integer_of(c, "height"), integer_of(c, "width"), integer_of(c, "channels")},
        integer_of(c, "kernelHeight"),
        integer_of(c, "kernelWidth"),
        integer_of(c, "stride")};
    const std::int64_t samples = integer_of(c, "samples");
    auto op = must(backend(GetParam())->pool(shape, {samples, DataType::kFloat32}));
    const Outcome found =
        run(*op, shape, DataType::kFloat32, samples, floats_of(c, "x"), floats_of(c, "dy"));
    expect_close(found.y, floats_of(c, "y"), 1e-6, "y");
    expect_close(found.dx, floats_of(c, "dx"), 1e-6, "dx");
  }
}

TEST_P(Pool, GradientsAreTheDerivatives) {
  for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
    const PoolShape shape{kind, {4, 5, 2}, 2, 3, 1};
    auto op = must(backend(GetParam())->pool(shape, {2, DataType::kFloat32}));
    Floats x(80);
    // All different, further apart than the step, so the maximum stays in its place.
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 80) / 16;
    const Floats dy = random_floats(2 * shape.output().size(), 1);
    const Outcome found = run(*op, shape, DataType::kFloat32, 2, x, dy);
    const auto f = [&] { return dot(run(*op, shape, DataType::kFloat32, 2, x, dy).y, dy); };
    expect_gradient(f, x.data(), found.dx, 1.0F / 64, 1e-4, "dx");
  }
}

TEST_P(Pool, AgreesWithTheReference) {
  // Windows side by side, overlapping, of more than 256 places, and with gaps between them.
  constexpr std::int64_t kWindows[][5] = {{28, 28, 2, 2, 2},   {14, 14, 2, 2, 2}, {7, 7, 2, 2, 2},
                                          {7, 6, 3, 3, 2},     {7, 7, 7, 7, 1},   {5, 6, 3, 2, 1},
                                          {17, 18, 17, 16, 1}, {7, 8, 2, 1, 3}};
  for (const auto& w : kWindows) {
    for (const std::int64_t channels : {1, 3, 16, 17, 32, 40}) {
      for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
        for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
          const PoolShape shape{kind, {w[0], w[1], channels}, w[2], w[3], w[4]};
          auto op = made_if_typed(GetParam(), type, backend(GetParam())->pool(shape, {8, type}));
          if (op == nullptr) continue;
          auto reference = must(backend("reference")->pool(shape, {7, type}));
          const Floats x = random_floats(7 * shape.input.size(), 1);
          const Floats dy = random_floats(7 * shape.output().size(), 2);
          const Outcome found = run(*op, shape, type, 7, x, dy);
          const Outcome expected = run(*reference, shape, type, 7, x, dy);
          const double tolerance = type == DataType::kFloat32 ? 1e-6 : 1e-2;
          expect_close(found.y, expected.y, tolerance, "y");
          expect_close(found.dx, expected.dx, tolerance, "dx");
        }
      }
    }
  }
}

TEST_P(Pool, MaxPassesNaNOn) {
  const PoolShape shape{PoolKind::kMax, {2, 2, 1}, 2, 2, 2};
  auto op = must(backend(GetParam())->pool(shape, {1, DataType::kFloat32}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Outcome found = run(*op, shape, DataType::kFloat32, 1, {1, nan, 3, 2}, {1});
  EXPECT_TRUE(std::isnan(found.y[0]));
  const Outcome two = run(*op, shape, DataType::kFloat32, 1, {1, nan, nan, 2}, {1});
  EXPECT_THAT(two.dx, ::testing::ElementsAre(0, 0, 1, 0)) << "the last of them gets the gradient";
}

TEST_P(Pool, RefusesAWindowThatDoesNotFit) {
  const auto made =
      backend(GetParam())->pool({PoolKind::kMax, {3, 3, 1}, 4, 4, 1}, {1, DataType::kFloat32});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("does not fit an input of 3"));
}

// A tie within a window, and a largest input that four overlapping windows share.
TEST_P(Pool, MaxSendsTheGradientToTheFirstOfTiesFromEveryWindow) {
  const PoolShape shape{PoolKind::kMax, {3, 3, 1}, 2, 2, 1};
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    auto op = made_if_typed(GetParam(), type, backend(GetParam())->pool(shape, {2, type}));
    if (op == nullptr) continue;
    const Outcome found =
        run(*op, shape, type, 2, {5, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 1, 0, 0, 0, 0},
            {1, 2, 3, 4, 1, 2, 3, 4});
    EXPECT_THAT(found.dx, ::testing::ElementsAre(1, 2, 0, 3, 4, 0, 0, 0, 0,  //
                                                 0, 0, 0, 0, 10, 0, 0, 0, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(, Pool, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
