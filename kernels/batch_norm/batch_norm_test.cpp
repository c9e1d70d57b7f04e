// Batch norm of every backend: against PyTorch, finite differences and the reference; and the end
// of a residual block against the operations that make it up.
#include <cmath>
#include <limits>
#include <optional>

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
                       c.variance.data(), y.data(), {});
  out.y_inference = y.floats();
  op.forward_training(c.samples, x.data(), c.scale.data(), c.shift.data(), out.mean.data(),
                      out.variance.data(), y.data(), {});
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
        auto op = made_if_typed(GetParam(), type,
                                backend(GetParam())->batch_norm(c.shape, {samples + 3, type}));
        if (op == nullptr) continue;
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

// An evaluation between a step's forward and its backward changes nothing.
TEST_P(BatchNorm, GoesBackwardForTheLastForwardOfTraining) {
  for (const DataType type : kTypes) {
    const Case c = random_case({{3, 5, 17}, 1e-5F, 0.1F, false}, 7);
    auto op = made_if_typed(GetParam(), type, backend(GetParam())->batch_norm(c.shape, {7, type}));
    if (op == nullptr) continue;
    const Outcome expected = run(*op, type, c);
    const auto count = static_cast<std::int64_t>(c.x.size());
    Array x(type, c.x), y(type, count), dy(type, c.dy), dx(type, count);
    Floats mean = c.mean, variance = c.variance, dscale(c.scale.size()), dshift(c.scale.size());
    op->forward_training(7, x.data(), c.scale.data(), c.shift.data(), mean.data(), variance.data(),
                         y.data(), {});
    op->forward_inference(7, x.data(), c.scale.data(), c.shift.data(), c.mean.data(),
                          c.variance.data(), y.data(), {});
    op->backward(7, x.data(), nullptr, dy.data(), c.scale.data(), dx.data(), dscale.data(),
                 dshift.data());
    EXPECT_EQ(dx.floats(), expected.dx);
    EXPECT_EQ(dscale, expected.dscale);
    EXPECT_EQ(dshift, expected.dshift);
  }
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

// ---- The end of a block ------------------------------------------------------------------------

struct Ends {
  Floats training, inference;
};

// Returns y of both passes. `shortcut`: empty, or as many as x.
Ends run_to_the_end(BatchNormOp& op, DataType type, const Case& c, const Floats& shortcut,
                    bool relu) {
  const auto count = static_cast<std::int64_t>(c.x.size());
  const Array x(type, c.x), summand(type, shortcut);
  Array y(type, count);
  const BlockEnd end{shortcut.empty() ? nullptr : summand.data(), relu};
  Ends found;
  op.forward_inference(c.samples, x.data(), c.scale.data(), c.shift.data(), c.mean.data(),
                       c.variance.data(), y.data(), end);
  found.inference = y.floats();
  Floats mean = c.mean, variance = c.variance;
  op.forward_training(c.samples, x.data(), c.scale.data(), c.shift.data(), mean.data(),
                      variance.data(), y.data(), end);
  found.training = y.floats();
  return found;
}

// Returns relu(y + shortcut) in fp32, by the backend's own operations.
Floats one_after_the_other(Backend& tested, const Floats& y, const Floats& shortcut, bool relu) {
  const auto count = static_cast<std::int64_t>(y.size());
  Array result(DataType::kFloat32, y);
  if (!shortcut.empty()) {
    const Array summand(DataType::kFloat32, shortcut);
    tested.add(DataType::kFloat32, count, result.data(), summand.data(), result.data(),
               /*relu=*/false);
  }
  if (relu) {
    tested.relu(DataType::kFloat32)->forward(count, result.data(), result.data());
  }
  tested.wait();
  return result.floats();
}

// Calls check(case, shortcut, relu) for packs that fit and packs that do not, rows of one block and
// of many, with and without each half of an end.
template <class Check>
void for_each_end(Check check) {
  for (const std::int64_t channels : {1, 3, 16, 17, 100}) {
    for (const std::int64_t samples : {1, 7, 40}) {
      const Case c = random_case({{3, 5, channels}, 1e-5F, 0.2F, false}, samples);
      for (const bool relu : {false, true}) {
        check(c, random_floats(samples * c.shape.input.size(), 7), relu);
        check(c, Floats(), relu);
      }
    }
  }
}

// Plans for more samples than are run, as for the last batch of an epoch.
PlanOptions plan_for(const Case& c, DataType type) { return {c.samples + 3, type}; }

TEST_P(BatchNorm, EndsABlockAsAddAndReluAfterIt) {
  for_each_end([&](const Case& c, const Floats& shortcut, bool relu) {
    Backend& tested = *backend(GetParam());
    auto op = must(tested.batch_norm(c.shape, plan_for(c, DataType::kFloat32)));
    const Ends plain = run_to_the_end(*op, DataType::kFloat32, c, {}, false);
    const Ends found = run_to_the_end(*op, DataType::kFloat32, c, shortcut, relu);
    EXPECT_EQ(found.training, one_after_the_other(tested, plain.training, shortcut, relu));
    EXPECT_EQ(found.inference, one_after_the_other(tested, plain.inference, shortcut, relu));
  });
}

// Expects an error of at most half a unit in the last place, plus the difference of fp32 statistics
// in another order. Rounding before the addition would be further off if summands cancel.
void expect_rounded_once(const Floats& found, const Floats& exact, DataType type) {
  const float half_a_unit = type == DataType::kBFloat16 ? 0x1p-8F : 0x1p-11F;
  ASSERT_EQ(found.size(), exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_NEAR(found[i], exact[i], std::abs(exact[i]) * half_a_unit + 2e-6F) << i;
  }
}

TEST_P(BatchNorm, RoundsTheEndOfABlockOnce) {
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    for_each_end([&](const Case& c, const Floats& shortcut, bool relu) {
      Backend& tested = *backend(GetParam());
      auto op = made_if_typed(GetParam(), type, tested.batch_norm(c.shape, plan_for(c, type)));
      if (op == nullptr) return;
      auto exact_op = must(tested.batch_norm(c.shape, plan_for(c, DataType::kFloat32)));
      const Ends exact = run_to_the_end(*exact_op, DataType::kFloat32, c, shortcut, relu);
      const Ends found = run_to_the_end(*op, type, c, shortcut, relu);
      expect_rounded_once(found.training, exact.training, type);
      EXPECT_EQ(found.inference, Array(type, exact.inference).floats());
    });
  }
}

TEST_P(BatchNorm, MayHaveItsInputAsShortcut) {
  const Case c = random_case({{2, 2, 16}, 1e-5F, 0.1F, false}, 3);
  auto op = must(backend(GetParam())->batch_norm(c.shape, {3, DataType::kFloat32}));
  const Array x(DataType::kFloat32, c.x);
  Array y(DataType::kFloat32, static_cast<std::int64_t>(c.x.size()));
  Floats mean = c.mean, variance = c.variance;
  op->forward_training(3, x.data(), c.scale.data(), c.shift.data(), mean.data(), variance.data(),
                       y.data(), {x.data(), true});
  EXPECT_EQ(y.floats(), run_to_the_end(*op, DataType::kFloat32, c, c.x, true).training);
}

// Statistics and gradients belong to the normalisation alone: the caller masks dy.
TEST_P(BatchNorm, GoesBackwardAsIfNoBlockEnded) {
  const Case c = random_case({{3, 5, 17}, 1e-5F, 0.1F, false}, 7);
  const auto count = static_cast<std::int64_t>(c.x.size());
  const Array shortcut(DataType::kFloat32, random_floats(count, 7));
  const auto outcome = [&](const BlockEnd& end) {
    auto op = must(backend(GetParam())->batch_norm(c.shape, {7, DataType::kFloat32}));
    const Array x(DataType::kFloat32, c.x);
    Array y(DataType::kFloat32, count), dy(DataType::kFloat32, c.dy), dx(DataType::kFloat32, count);
    Outcome out{{}, {}, {}, Floats(c.scale.size()), Floats(c.scale.size()), c.mean, c.variance};
    op->forward_training(7, x.data(), c.scale.data(), c.shift.data(), out.mean.data(),
                         out.variance.data(), y.data(), end);
    op->backward(7, x.data(), nullptr, dy.data(), c.scale.data(), dx.data(), out.dscale.data(),
                 out.dshift.data());
    out.dx = dx.floats();
    return out;
  };
  const Outcome found = outcome({shortcut.data(), true}), expected = outcome({});
  EXPECT_EQ(found.dx, expected.dx);
  EXPECT_EQ(found.dscale, expected.dscale);
  EXPECT_EQ(found.dshift, expected.dshift);
  EXPECT_EQ(found.mean, expected.mean);
  EXPECT_EQ(found.variance, expected.variance);
}

// Results of a backward pass through the end of a block.
struct EndGradients {
  Floats dy, dx, dscale, dshift;
};

// Steps back in one call, or by the sequence of operations that it must equal. `other`, `y`: empty
// if the end lacks them.
EndGradients step_back_through_the_end(Backend& tested, BatchNormOp& op, DataType type,
                                       const Case& c, const Floats& other, const Floats& y,
                                       bool in_one_call) {
  const auto count = static_cast<std::int64_t>(c.x.size());
  const Array x(type, c.x), addend(type, other), end(type, y);
  Array dy(type, c.dy), dx(type, count), ignored(type, count);
  EndGradients out{{}, {}, Floats(c.scale.size()), Floats(c.scale.size())};
  Floats mean = c.mean, variance = c.variance;
  op.forward_training(c.samples, x.data(), c.scale.data(), c.shift.data(), mean.data(),
                      variance.data(), ignored.data(), {});
  if (in_one_call) {
    op.backward_end(c.samples, x.data(), y.empty() ? nullptr : end.data(), dy.data(),
                    other.empty() ? nullptr : addend.data(), c.scale.data(), dx.data(),
                    out.dscale.data(), out.dshift.data());
  } else {
    if (!other.empty()) tested.add(type, count, dy.data(), addend.data(), dy.data(), false);
    if (!y.empty()) tested.relu(type)->backward(count, end.data(), dy.data(), dy.data());
    op.backward(c.samples, x.data(), nullptr, dy.data(), c.scale.data(), dx.data(),
                out.dscale.data(), out.dshift.data());
  }
  out.dy = dy.floats();
  out.dx = dx.floats();
  return out;
}

TEST_P(BatchNorm, GoesBackThroughTheEndOfABlockAsAddAndReluBeforeIt) {
  Backend& tested = *backend(GetParam());
  for (const std::int64_t channels : {3, 16, 100}) {
    for (const std::int64_t samples : {1, 7, 40}) {
      const Case c = random_case({{3, 5, channels}, 1e-5F, 0.2F, false}, samples);
      const Floats other = random_floats(samples * c.shape.input.size(), 7);
      const Floats y = random_floats(samples * c.shape.input.size(), 8);
      for (const DataType type : kTypes) {
        auto op = made_if_typed(GetParam(), type, tested.batch_norm(c.shape, plan_for(c, type)));
        if (op == nullptr) continue;
        for (const bool relu : {true, false}) {
          for (const bool two : {true, false}) {
            const auto outcome = [&](bool in_one_call) {
              return step_back_through_the_end(tested, *op, type, c, two ? other : Floats(),
                                               relu ? y : Floats(), in_one_call);
            };
            const EndGradients found = outcome(true), expected = outcome(false);
            EXPECT_EQ(found.dy, expected.dy);
            EXPECT_EQ(found.dx, expected.dx);
            EXPECT_EQ(found.dscale, expected.dscale);
            EXPECT_EQ(found.dshift, expected.dshift);
          }
        }
      }
    }
  }
}

// dx may replace the second part of the gradient or the end's output, as neither is needed any
// more.
TEST_P(BatchNorm, MayWriteItsGradientOverItsAddendOrMask) {
  const Case c = random_case({{2, 2, 16}, 1e-5F, 0.1F, false}, 3);
  const auto count = static_cast<std::int64_t>(c.x.size());
  const Floats other = random_floats(count, 7), y = random_floats(count, 8);
  Backend& tested = *backend(GetParam());
  auto op = must(tested.batch_norm(c.shape, {3, DataType::kFloat32}));
  const EndGradients expected =
      step_back_through_the_end(tested, *op, DataType::kFloat32, c, other, y, true);
  const Array x(DataType::kFloat32, c.x);
  for (const bool over_y : {false, true}) {
    Array dy(DataType::kFloat32, c.dy), addend(DataType::kFloat32, other);
    Array end(DataType::kFloat32, y);
    Array& dx = over_y ? end : addend;
    Floats dscale(c.scale.size()), dshift(c.scale.size());
    op->backward_end(3, x.data(), end.data(), dy.data(), addend.data(), c.scale.data(), dx.data(),
                     dscale.data(), dshift.data());
    EXPECT_EQ(dx.floats(), expected.dx);
    EXPECT_EQ(dy.floats(), expected.dy);
  }
}

void expect_nan_from(const Floats& y, std::size_t first, std::size_t step) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(std::isnan(y[i]), i >= first && (i - first) % step == 0) << i;
  }
}

// A diverged network must look diverged, whichever ReLU it went through.
TEST_P(BatchNorm, PassesNaNOn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool fused : {false, true}) {
    for (const std::int64_t channels : {3, 16}) {
      for (const DataType type : kTypes) {
        Case c = random_case({{2, 2, channels}, 1e-5F, 0.1F, fused}, 3);
        auto op =
            made_if_typed(GetParam(), type, backend(GetParam())->batch_norm(c.shape, {3, type}));
        if (op == nullptr) continue;
        if (!fused) {
          Floats shortcut = random_floats(3 * c.shape.input.size(), 7);
          shortcut.back() = nan;
          const Ends ends = run_to_the_end(*op, type, c, shortcut, true);
          expect_nan_from(ends.training, shortcut.size() - 1, 1);
          expect_nan_from(ends.inference, shortcut.size() - 1, 1);
        }
        c.scale[1] = nan;
        const Ends ends = run_to_the_end(*op, type, c, {}, !fused);
        expect_nan_from(ends.training, 1, c.scale.size());
        expect_nan_from(ends.inference, 1, c.scale.size());
      }
    }
  }
}

// The numbers of one channel.
Floats channel_of(const Floats& values, std::size_t channel, std::size_t channels) {
  Floats found;
  for (std::size_t i = channel; i < values.size(); i += channels) found.push_back(values[i]);
  return found;
}

// A fused ReLU masks nothing where y is NaN: the gradients are as without a ReLU.
TEST_P(BatchNorm, PassesGradientsBackWhereYIsNaN) {
  for (const std::int64_t channels : {3, 16}) {
    for (const DataType type : kTypes) {
      Case c = random_case({{2, 2, channels}, 1e-5F, 0.1F, false}, 3);
      c.shift[1] = std::numeric_limits<float>::quiet_NaN();
      const auto outcome = [&](bool fused) -> std::optional<Outcome> {
        c.shape.relu = fused;
        auto op =
            made_if_typed(GetParam(), type, backend(GetParam())->batch_norm(c.shape, {3, type}));
        if (op == nullptr) return {};
        return run(*op, type, c);
      };
      const auto found = outcome(true), expected = outcome(false);
      if (!found || !expected) continue;
      const auto n = static_cast<std::size_t>(channels);
      expect_nan_from(found->y, 1, n);
      EXPECT_EQ(channel_of(found->dx, 1, n), channel_of(expected->dx, 1, n));
      EXPECT_EQ(found->dscale[1], expected->dscale[1]);
      EXPECT_EQ(found->dshift[1], expected->dshift[1]);
      EXPECT_NE(found->dshift[0], expected->dshift[0]) << "elsewhere it masks";
    }
  }
}

TEST_P(BatchNorm, PassesGradientsBackWhereABlockEndedInNaN) {
  const Case c = random_case({{2, 2, 16}, 1e-5F, 0.1F, false}, 3);
  const Floats y(c.x.size(), std::numeric_limits<float>::quiet_NaN());
  for (const DataType type : kTypes) {
    auto op = made_if_typed(GetParam(), type, backend(GetParam())->batch_norm(c.shape, {3, type}));
    if (op == nullptr) continue;
    const auto through = [&](const Floats& end) {
      return step_back_through_the_end(*backend(GetParam()), *op, type, c, {}, end, true);
    };
    EXPECT_EQ(through(y).dy, Array(type, c.dy).floats());
    EXPECT_EQ(through(y).dx, through({}).dx);
  }
}

TEST_P(BatchNorm, WithAReluOfItsOwnEndsNoBlock) {
  if (kOnGpu) GTEST_SKIP() << "CUDA's driver cannot be used in the child of a fork";
  const Case c = random_case({{1, 1, 3}, 1e-5F, 0.1F, true}, 2);
  auto op = must(backend(GetParam())->batch_norm(c.shape, {2, DataType::kFloat32}));
  EXPECT_DEATH(run_to_the_end(*op, DataType::kFloat32, c, c.x, false), "ends no block");
  EXPECT_DEATH(run_to_the_end(*op, DataType::kFloat32, c, {}, true), "ends no block");
  Array dy(DataType::kFloat32, c.dy);
  EXPECT_DEATH(op->backward_end(2, c.x.data(), nullptr, dy.data(), nullptr, c.scale.data(), nullptr,
                                nullptr, nullptr),
               "ends no block");
}

INSTANTIATE_TEST_SUITE_P(, BatchNorm, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
