// Layer and RMS norm of every backend: against PyTorch, finite differences and the reference.
#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

struct Case {
  RowNormShape shape;
  std::int64_t samples = 1;
  Floats x, scale, shift, dy;  // shift is empty where there is none
};

struct Outcome {
  Floats y, dx, dscale, dshift;
};

Case random_case(const RowNormShape& shape, std::int64_t samples) {
  const std::int64_t channels = shape.input.channels;
  const bool shifts = shape.kind == RowNormKind::kLayer;
  return {shape,
          samples,
          random_floats(samples * shape.input.size(), 1),
          random_floats(channels, 2),
          shifts ? random_floats(channels, 3) : Floats(),
          random_floats(samples * shape.input.size(), 4)};
}

Outcome run(RowNormOp& op, DataType type, const Case& c) {
  const auto count = static_cast<std::int64_t>(c.x.size());
  const Array x(type, c.x), dy(type, c.dy);
  Array y(type, count), dx(type, count);
  Outcome out{{}, {}, Floats(c.scale.size()), Floats(c.shift.size())};
  op.forward(c.samples, x.data(), c.scale.data(), c.shift.empty() ? nullptr : c.shift.data(),
             y.data());
  op.backward(c.samples, x.data(), dy.data(), c.scale.data(), dx.data(), out.dscale.data(),
              c.shift.empty() ? nullptr : out.dshift.data());
  out.y = y.floats();
  out.dx = dx.floats();
  return out;
}

void expect_agreement(const Outcome& found, const Outcome& expected, double tolerance) {
  expect_close(found.y, expected.y, tolerance, "y");
  expect_close(found.dx, expected.dx, tolerance, "dx");
  expect_close(found.dscale, expected.dscale, tolerance, "dscale");
  expect_close(found.dshift, expected.dshift, tolerance, "dshift");
}

class RowNorm : public ::testing::TestWithParam<std::string> {};

TEST_P(RowNorm, AgreesWithPyTorch) {
  for (const Json& c : golden_cases("layer_norm")) {
    const RowNormKind kind =
        c.find("kind")->as_string() == "layer" ? RowNormKind::kLayer : RowNormKind::kRms;
    const ImageShape image{integer_of(c, "height"), integer_of(c, "width"),
                           integer_of(c, "channels")};
    const Case input{{kind, image, number_of(c, "epsilon", 0)},
                     integer_of(c, "samples"),
                     floats_of(c, "x"),
                     floats_of(c, "scale"),
                     floats_of(c, "shift"),
                     floats_of(c, "dy")};
    auto op = must(backend(GetParam())->row_norm(input.shape, {input.samples, DataType::kFloat32}));
    expect_agreement(
        run(*op, DataType::kFloat32, input),
        {floats_of(c, "y"), floats_of(c, "dx"), floats_of(c, "dscale"), floats_of(c, "dshift")},
        1e-5);
  }
}

TEST_P(RowNorm, GradientsAreTheDerivatives) {
  for (const RowNormKind kind : {RowNormKind::kLayer, RowNormKind::kRms}) {
    Case c = random_case({kind, {2, 1, 5}, 1e-3F}, 3);
    auto op = must(backend(GetParam())->row_norm(c.shape, {3, DataType::kFloat32}));
    const Outcome result = run(*op, DataType::kFloat32, c);
    const auto f = [&] { return dot(run(*op, DataType::kFloat32, c).y, c.dy); };
    expect_gradient(f, c.x.data(), result.dx, 1.0F / 256, 5e-3, "dx");
    expect_gradient(f, c.scale.data(), result.dscale, 1.0F / 64, 1e-3, "dscale");
    if (!c.shift.empty()) {
      expect_gradient(f, c.shift.data(), result.dshift, 1.0F / 64, 1e-3, "dshift");
    }
  }
}

TEST_P(RowNorm, AgreesWithTheReferenceInEveryType) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    for (const std::int64_t channels : {1, 7, 40}) {
      const Case c = random_case({RowNormKind::kLayer, {3, 2, channels}, 1e-5F}, 4);
      auto op = must(backend(GetParam())->row_norm(c.shape, {6, type}));
      auto reference = must(backend("reference")->row_norm(c.shape, {4, DataType::kFloat32}));
      expect_agreement(run(*op, type, c), run(*reference, DataType::kFloat32, c),
                       type == DataType::kFloat32 ? 1e-5 : 1e-2);
    }
  }
}

void expect_the_reference(Backend& tested, RowNormKind kind, DataType type, std::int64_t rows,
                          std::int64_t channels) {
  const Case c = random_case({kind, {1, 1, channels}, 1e-5F}, rows);
  auto op = must(tested.row_norm(c.shape, {rows, type}));
  auto reference = must(backend("reference")->row_norm(c.shape, {rows, type}));
  expect_agreement(run(*op, type, c), run(*reference, type, c),
                   type == DataType::kFloat32 ? 1e-5 : 1e-2);
}

// Around the sizes of vectors, of warps, and of what fits in the registers of a block.
TEST_P(RowNorm, AgreesWithTheReferenceAtEverySize) {
  constexpr std::int64_t kRowsAndChannels[][2] = {{1, 31},   {5, 33},   {2, 1023}, {2, 1024},
                                                  {2, 1025}, {1, 2056}, {1, 3001}, {1, 9000}};
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    for (const auto& [rows, channels] : kRowsAndChannels) {
      expect_the_reference(*backend(GetParam()), RowNormKind::kLayer, type, rows, channels);
    }
    expect_the_reference(*backend(GetParam()), RowNormKind::kRms, type, 3, 1025);
    expect_the_reference(*backend(GetParam()), RowNormKind::kRms, type, 2, 9000);
  }
}

TEST_P(RowNorm, AgreesWithTheReferenceOnManyRows) {
  expect_the_reference(*backend(GetParam()), RowNormKind::kLayer, DataType::kFloat32, 2500, 8);
}

TEST_P(RowNorm, AddsGradientsToWhatIsThere) {
  const Case c = random_case({RowNormKind::kLayer, {1, 1, 4}, 1e-5F}, 2);
  auto op = must(backend(GetParam())->row_norm(c.shape, {2, DataType::kFloat32}));
  const Outcome once = run(*op, DataType::kFloat32, c);
  Floats dscale = once.dscale, dshift = once.dshift;
  op->backward(2, c.x.data(), c.dy.data(), c.scale.data(), nullptr, dscale.data(), dshift.data());
  for (std::size_t i = 0; i < dscale.size(); ++i) {
    EXPECT_FLOAT_EQ(dscale[i], 2 * once.dscale[i]);
    EXPECT_FLOAT_EQ(dshift[i], 2 * once.dshift[i]);
  }
}

// A large mean beside a small deviation: sums of squares in fp32 would lose the variance.
TEST_P(RowNorm, KeepsASmallVarianceBesideALargeMean) {
  const Case near_zero = random_case({RowNormKind::kLayer, {1, 1, 64}, 1e-5F}, 1);
  Case far = near_zero;
  for (float& x : far.x) x += 1000;
  auto op = must(backend(GetParam())->row_norm(far.shape, {1, DataType::kFloat32}));
  expect_close(run(*op, DataType::kFloat32, far).y, run(*op, DataType::kFloat32, near_zero).y, 1e-4,
               "y");
}

TEST_P(RowNorm, RefusesAnEpsilonOfZero) {
  const auto made =
      backend(GetParam())->row_norm({RowNormKind::kRms, {1, 1, 4}, 0}, {1, DataType::kFloat32});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("epsilon"));
}

INSTANTIATE_TEST_SUITE_P(, RowNorm, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
