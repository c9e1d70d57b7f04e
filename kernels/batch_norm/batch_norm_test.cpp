// Batch norm of every backend: against PyTorch, finite differences and the reference.
#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

struct Case {
  BatchNormShape shape;
  std::int64_t samples = 1;
  Floats x, scale, shift, mean, variance, dy;
};

struct Outcome {
  Floats y, y_inference, dx, dscale, dshift, mean, variance;
};

Case random_case(const BatchNormShape& shape, std::int64_t samples) {
  const std::int64_t channels = shape.input.channels;
  Case c{shape,
         samples,
         random_floats(samples * shape.input.size(), 1),
         random_floats(channels, 2),
         random_floats(channels, 3),
         random_floats(channels, 4),
         random_floats(channels, 5),
         random_floats(samples * shape.input.size(), 6)};
  for (float& variance : c.variance) variance = variance * variance + 0.5F;
  return c;
}

Outcome run(BatchNormOp& op, DataType type, const Case& c) {
  const auto count = static_cast<std::int64_t>(c.x.size());
  Array x(type, c.x), y(type, count), dy(type, c.dy), dx(type, count);
  Outcome out{{}, {}, {}, Floats(c.scale.size()), Floats(c.scale.size()), c.mean, c.variance};
  op.forward_inference(c.samples, x.data(), c.scale.data(), c.shift.data(), c.mean.data(),
                       c.variance.data(), y.data());
  out.y_inference = y.floats();
  op.forward_training(c.samples, x.data(), c.scale.data(), c.shift.data(), out.mean.data(),
                      out.variance.data(), y.data());
  op.backward(c.samples, x.data(), y.data(), dy.data(), c.scale.data(), dx.data(),
              out.dscale.data(), out.dshift.data());
  out.y = y.floats();
  out.dx = dx.floats();
  return out;
}

void expect_agreement(const Outcome& found, const Outcome& expected, double tolerance) {
  expect_close(found.y, expected.y, tolerance, "y");
  expect_close(found.y_inference, expected.y_inference, tolerance, "y in inference");
  expect_close(found.dx, expected.dx, tolerance, "dx");
  expect_close(found.dscale, expected.dscale, tolerance, "dscale");
  expect_close(found.dshift, expected.dshift, tolerance, "dshift");
  expect_close(found.mean, expected.mean, tolerance, "running mean");
  expect_close(found.variance, expected.variance, tolerance, "running variance");
}

class BatchNorm : public ::testing::TestWithParam<std::string> {};

TEST_P(BatchNorm, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("batch_norm")) {
    const ImageShape image{integer_of(c, "height"), integer_of(c, "width"),
                           integer_of(c, "channels")};
    const BatchNormShape shape{image, number_of(c, "epsilon", 0), number_of(c, "momentum", 0),
                               boolean_of(c, "relu")};
    const std::int64_t samples = integer_of(c, "samples");
    auto op = must(backend(GetParam())->batch_norm(shape, {samples, DataType::kFloat32}));
    const Case input{shape,
                     samples,
                     floats_of(c, "x"),
                     floats_of(c, "scale"),
                     floats_of(c, "shift"),
                     floats_of(c, "mean"),
                     floats_of(c, "variance"),
                     floats_of(c, "dy")};
    const Outcome expected{floats_of(c, "y"),
                           floats_of(c, "yInference"),
                           floats_of(c, "dx"),
                           floats_of(c, "dscale"),
                           floats_of(c, "dshift"),
                           floats_of(c, "meanAfter"),
                           floats_of(c, "varianceAfter")};
    expect_agreement(run(*op, DataType::kFloat32, input), expected, 1e-5);
  }
}

TEST_P(BatchNorm, GradientsAreTheDerivatives) {
  Case c = random_case({{2, 2, 3}, 1e-3F, 0.1F, false}, 4);
  auto op = must(backend(GetParam())->batch_norm(c.shape, {4, DataType::kFloat32}));
  const Outcome result = run(*op, DataType::kFloat32, c);
  const auto f = [&] { return dot(run(*op, DataType::kFloat32, c).y, c.dy); };
  expect_gradient(f, c.x.data(), result.dx, 1.0F / 256, 5e-3, "dx");
  expect_gradient(f, c.scale.data(), result.dscale, 1.0F / 64, 1e-3, "dscale");
  expect_gradient(f, c.shift.data(), result.dshift, 1.0F / 64, 1e-3, "dshift");
}

TEST_P(BatchNorm, AgreesWithTheReference) {
  for (const std::int64_t channels : {1, 3, 16, 17, 64, 100}) {
    for (const std::int64_t samples : {1, 7, 128}) {
      for (const DataType type : kTypes) {
        const Case c = random_case({{3, 5, channels}, 1e-5F, 0.2F, channels % 2 == 0}, samples);
        auto made = backend(GetParam())->batch_norm(c.shape, {samples + 3, type});
        if (!made.ok() && type != DataType::kFloat32) continue;
        auto op = must(std::move(made));
        auto reference = must(backend("reference")->batch_norm(c.shape, {samples, type}));
        expect_agreement(run(*op, type, c), run(*reference, type, c),
                         type == DataType::kFloat32 ? 1e-5 : 1e-2);
      }
    }
  }
}

TEST_P(BatchNorm, GivesTheSameBitsForTheSameBatch) {
  const Case c = random_case({{9, 9, 24}, 1e-5F, 0.1F, true}, 30);
  auto op = must(backend(GetParam())->batch_norm(c.shape, {30, DataType::kFloat32}));
  const Outcome first = run(*op, DataType::kFloat32, c);
  const Outcome second = run(*op, DataType::kFloat32, c);
  EXPECT_EQ(first.y, second.y);
  EXPECT_EQ(first.dx, second.dx);
  EXPECT_EQ(first.dscale, second.dscale);
  EXPECT_EQ(first.variance, second.variance);
}

// A large mean beside a small deviation: sums of squares in fp32 would lose the variance.
TEST_P(BatchNorm, KeepsASmallVarianceBesideALargeMean) {
  Case c = random_case({{4, 4, 2}, 1e-5F, 1.0F, false}, 8);
  for (float& x : c.x) x = 1000 + x;
  auto op = must(backend(GetParam())->batch_norm(c.shape, {8, DataType::kFloat32}));
  const Outcome result = run(*op, DataType::kFloat32, c);
  EXPECT_NEAR(result.variance[0], 1.0 / 3, 0.1);
}

TEST_P(BatchNorm, SurvivesASingleRow) {
  const Case c = random_case({{1, 1, 3}, 1e-5F, 0.1F, false}, 1);
  auto op = must(backend(GetParam())->batch_norm(c.shape, {1, DataType::kFloat32}));
  const Outcome result = run(*op, DataType::kFloat32, c);
  expect_close(result.y, c.shift, 1e-6, "y is the shift");
  EXPECT_FLOAT_EQ(result.variance[0], 0.9F * c.variance[0]);
}

INSTANTIATE_TEST_SUITE_P(, BatchNorm, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
