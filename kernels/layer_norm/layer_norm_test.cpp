// Layer and RMS norm of every backend: against PyTorch, finite differences and the reference; fused
// with additions against the same work in two calls.
#include <cmath>
#include <functional>

#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

struct Case {
  RowNormShape shape;
  std::int64_t samples = 1;
  Floats x, scale, shift, dy;  // shift is empty if the norm has no shift
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

// Scale and shift aligned as in a backend's memory, so that packs are read.
struct Parameters {
  explicit Parameters(const Case& c)
      : scales(DataType::kFloat32, c.scale),
        shifts(DataType::kFloat32, c.shift),
        scale(static_cast<const float*>(scales.data())),
        shift(c.shift.empty() ? nullptr : static_cast<const float*>(shifts.data())) {}
  const Array scales, shifts;
  const float *const scale, *const shift;
};

Outcome run(RowNormOp& op, DataType type, const Case& c) {
  const Parameters at(c);
  const auto count = static_cast<std::int64_t>(c.x.size());
  const Array x(type, c.x), dy(type, c.dy);
  Array y(type, count), dx(type, count);
  Outcome out{{}, {}, Floats(c.scale.size()), Floats(c.shift.size())};
  op.forward(c.samples, x.data(), at.scale, at.shift, y.data());
  op.backward(c.samples, x.data(), dy.data(), at.scale, dx.data(), false, out.dscale.data(),
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

// Sizes around vectors, warps, and the capacity of a block's registers.
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

TEST_P(RowNorm, AccumulatesGradients) {
  const Case c = random_case({RowNormKind::kLayer, {1, 1, 4}, 1e-5F}, 2);
  auto op = must(backend(GetParam())->row_norm(c.shape, {2, DataType::kFloat32}));
  const Outcome once = run(*op, DataType::kFloat32, c);
  Floats dscale = once.dscale, dshift = once.dshift;
  op->backward(2, c.x.data(), c.dy.data(), c.scale.data(), nullptr, false, dscale.data(),
               dshift.data());
  for (std::size_t i = 0; i < dscale.size(); ++i) {
    EXPECT_FLOAT_EQ(dscale[i], 2 * once.dscale[i]);
    EXPECT_FLOAT_EQ(dshift[i], 2 * once.dshift[i]);
  }
}

// ---- Beside a residual block -------------------------------------------------------------------

// Numbers that use all bits of the type, so their sums must be rounded.
Floats fractions(std::int64_t count, std::uint64_t seed) {
  Floats values = random_floats(count, seed);
  for (float& value : values) value /= 3;
  return values;
}

// Calls visit for both kinds, every type, and widths around the registers of a warp and of a block.
void for_each_width(const std::function<void(const RowNormShape&, DataType)>& visit) {
  for (const RowNormKind kind : {RowNormKind::kLayer, RowNormKind::kRms}) {
    for (const DataType type : kTypes) {
      for (const std::int64_t channels : {1, 7, 33, 1023, 1024, 1025, 2056, 9000}) {
        SCOPED_TRACE(std::to_string(channels) + " channels of type " +
                     std::to_string(static_cast<int>(type)));
        visit({kind, {2, 1, channels}, 0.1F}, type);
      }
    }
  }
}

constexpr std::int64_t kMostSamples = 3;  // of a plan; a call has one sample fewer

// The buffer to which forward_sum writes its sum.
enum class Place : std::uint8_t { kElsewhere, kFirst, kSecond };

struct SumOutcome {
  Floats sum;
  Outcome of_sum;
};

void expect_same(const SumOutcome& found, const SumOutcome& expected) {
  EXPECT_EQ(found.sum, expected.sum);
  EXPECT_EQ(found.of_sum.y, expected.of_sum.y);
  EXPECT_EQ(found.of_sum.dx, expected.of_sum.dx);
  EXPECT_EQ(found.of_sum.dscale, expected.of_sum.dscale);
  EXPECT_EQ(found.of_sum.dshift, expected.of_sum.dshift);
}

// Runs `forward(a, b, sum, y)` and a backward on the first samples of full arrays.
template <class Forward>
SumOutcome run_sum(RowNormOp& op, DataType type, const RowNormShape& shape, Place place,
                   Forward forward) {
  const Case c = random_case(shape, kMostSamples);
  const Parameters at(c);
  const auto count = static_cast<std::int64_t>(c.x.size());
  const Array dy(type, c.dy);
  Array a(type, c.x), b(type, fractions(count, 5)), elsewhere(type, fractions(count, 6));
  Array y(type, count), dx(type, count);
  Array& sum = place == Place::kFirst ? a : place == Place::kSecond ? b : elsewhere;
  Outcome out{{}, {}, Floats(c.scale.size()), Floats(c.shift.size())};
  forward(a.data(), b.data(), sum.data(), at.scale, at.shift, y.data());
  op.backward(kMostSamples - 1, sum.data(), dy.data(), at.scale, dx.data(), false,
              out.dscale.data(), c.shift.empty() ? nullptr : out.dshift.data());
  out.y = y.floats();
  out.dx = dx.floats();
  return {sum.floats(), out};
}

// The same bits; memory behind the last sample of a smaller batch is unchanged.
TEST_P(RowNorm, ForwardOfASumIsAddThenForward) {
  Backend& tested = *backend(GetParam());
  for_each_width([&](const RowNormShape& shape, DataType type) {
    auto op = must(tested.row_norm(shape, {kMostSamples, type}));
    const std::int64_t samples = kMostSamples - 1;
    const auto fused = [&](auto* a, auto* b, auto* sum, auto* scale, auto* shift, auto* y) {
      op->forward_sum(samples, a, b, sum, scale, shift, y);
    };
    const auto in_two_calls = [&](auto* a, auto* b, auto* sum, auto* scale, auto* shift, auto* y) {
      tested.add(type, samples * shape.input.size(), a, b, sum, false);
      op->forward(samples, sum, scale, shift, y);
    };
    for (const Place place : {Place::kElsewhere, Place::kFirst, Place::kSecond}) {
      SCOPED_TRACE("the sum at place " + std::to_string(static_cast<int>(place)));
      expect_same(run_sum(*op, type, shape, place, fused),
                  run_sum(*op, type, shape, place, in_two_calls));
    }
  });
}

// Half a unit in the last place, relative.
double rounding_of(DataType type) {
  if (type == DataType::kFloat32) return 0x1p-24;
  return type == DataType::kBFloat16 ? 0x1p-8 : 0x1p-11;
}

// Returns dx, added to the contents of `before`, if any.
Floats input_gradient(Backend& tested, DataType type, const Case& c, const Floats& before) {
  auto op = must(tested.row_norm(c.shape, {kMostSamples, type}));
  const Array x(type, c.x), dy(type, c.dy);
  Array y(type, static_cast<std::int64_t>(c.x.size()));
  Array dx(type, before.empty() ? Floats(c.x.size()) : before);
  Floats dscale(c.scale.size());
  const Parameters at(c);
  const std::int64_t samples = kMostSamples - 1;
  op->forward(samples, x.data(), at.scale, at.shift, y.data());
  op->backward(samples, x.data(), dy.data(), at.scale, dx.data(), !before.empty(), dscale.data(),
               nullptr);
  return dx.floats();
}

// A gradient rounded before the addition would be further off where the two cancel.
TEST_P(RowNorm, AccumulatesTheInputGradientAndRoundsOnce) {
  Backend& tested = *backend(GetParam());
  for_each_width([&](const RowNormShape& shape, DataType type) {
    const Case c = random_case(shape, kMostSamples);
    const Floats before = Array(type, fractions(kMostSamples * shape.input.size(), 5)).floats();
    const Floats exact = input_gradient(tested, DataType::kFloat32, c, {});
    const Floats added = input_gradient(tested, type, c, before);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double sum = static_cast<double>(exact[i]) + before[i];
      ASSERT_NEAR(added[i], sum, rounding_of(type) * std::abs(sum) + 2e-6) << "dx[" << i << "]";
    }
  });
}

TEST_P(RowNorm, AddsNothingWhereNoInputGradientIsWanted) {
  for (const std::int64_t channels : {40, 9000}) {
    const Case c = random_case({RowNormKind::kLayer, {1, 1, channels}, 1e-5F}, 2);
    auto op = must(backend(GetParam())->row_norm(c.shape, {2, DataType::kFloat32}));
    const Outcome expected = run(*op, DataType::kFloat32, c);
    Floats dscale(c.scale.size()), dshift(c.scale.size());
    op->backward(2, c.x.data(), c.dy.data(), c.scale.data(), nullptr, true, dscale.data(),
                 dshift.data());
    EXPECT_EQ(dscale, expected.dscale);
    EXPECT_EQ(dshift, expected.dshift);
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
