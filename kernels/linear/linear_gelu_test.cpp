// Linear layers next to a GELU, of every backend: against the separate layer and GELU, and finite
// differences.
#include "kernels/testing/differences.h"
#include "kernels/testing/weighted.h"

namespace fettle::kernels::testing {
namespace {

constexpr GeluForm kForms[] = {GeluForm::kExact, GeluForm::kTanh};

// Forward: x, y and activated. Backward: x = GELU(before).
struct Outcome {
  Floats y, activated, dx, dw, db;
};

std::string describe(const LinearShape& shape, DataType type, std::int64_t samples) {
  const auto form = shape.gelu_after ? shape.gelu_after : shape.gelu_before;
  return std::to_string(samples) + " x " + std::to_string(shape.inputs) + " -> " +
         std::to_string(shape.outputs) + (form == GeluForm::kTanh ? " tanh" : " exact") +
         (shape.bias ? " bias" : "") + (shape.relu ? " relu" : "") + ", " +
         std::to_string(size_of(type)) + " bytes";
}

// `x` is the input of the GELU before the layer, if the layer has one.
WeightedInput input_for(const LinearShape& shape, std::int64_t samples) {
  return random_input(samples, shape.inputs, shape.outputs, shape.inputs, shape.outputs);
}

class LinearGelu : public ::testing::TestWithParam<std::string> {
 protected:
  Backend& here() { return *backend(GetParam()); }

  std::unique_ptr<GeluOp> gelu(std::optional<GeluForm> form, std::int64_t count, DataType type) {
    return here().gelu(form.value_or(GeluForm::kExact), count, type);
  }

  // The same bits, except for a GPU's library, whose GELU reads sums that have not been rounded
  // yet.
  double tolerance(DataType type) {
    const std::string device = here().device().name;
    if (device.empty() || device == "emulated GPU") return 0;
    return type == DataType::kFloat32 ? 2e-6 : 1e-2;
  }

  // Compares for the plan's number of samples, and for fewer.
  void expect_same(const LinearShape& shape, DataType type) {
    constexpr std::int64_t kMost = 70;
    auto op = made_if_typed(GetParam(), type, here().linear(shape, {kMost, type}));
    if (op == nullptr) return;
    LinearShape plain_shape = shape;
    plain_shape.gelu_after = plain_shape.gelu_before = std::nullopt;
    auto plain = must(here().linear(plain_shape, {kMost, type}));
    for (const std::int64_t samples : {kMost, std::int64_t{1}, std::int64_t{33}}) {
      const WeightedInput input = input_for(shape, samples);
      const Outcome found = fused(*op, shape, type, input);
      const Outcome expected = separate(*plain, shape, type, input);
      const std::string what = describe(shape, type, samples);
      expect_close(found.y, expected.y, tolerance(type), what + ": y");
      expect_close(found.activated, expected.activated, tolerance(type), what + ": activated");
      expect_close(found.dx, expected.dx, tolerance(type), what + ": dx");
      expect_close(found.dw, expected.dw, tolerance(type), what + ": dw");
      expect_close(found.db, expected.db, tolerance(type), what + ": db");
    }
  }

  // Returns the output of the GELU before the layer, or the input without such a GELU.
  Array activated_input(const LinearShape& shape, DataType type, const Array& before,
                        std::int64_t count) {
    if (!shape.gelu_before) return {type, before.floats()};
    Array x(type, count);
    gelu(shape.gelu_before, count, type)->forward(count, before.data(), x.data());
    return x;
  }

  static void set_weights(WeightedOp& op, const LinearShape& shape, const Array& weights,
                          const Floats& bias, const Array& typed_bias) {
    LayerWeights from{weights.data()};
    if (shape.bias) from = {weights.data(), bias.data(), typed_bias.data()};
    op.set_weights(from);
  }

  Outcome fused(LinearOp& op, const LinearShape& shape, DataType type, const WeightedInput& input) {
    const std::int64_t in = std::ssize(input.x), out = std::ssize(input.dy);
    const Array before(type, input.x), weights(type, input.weights), bias(type, input.bias);
    const Array x = activated_input(shape, type, before, in);
    Array y(type, out), activated(type, out), dy(type, input.dy), dx(type, in);
    Outcome outcome{{}, {}, {}, Floats(input.weights.size()), Floats(input.bias.size())};
    set_weights(op, shape, weights, input.bias, bias);
    if (shape.gelu_after) {
      op.forward_gelu(input.samples, x.data(), y.data(), activated.data());
    } else {
      op.forward(input.samples, x.data(), y.data());
    }
    float* db = shape.bias ? outcome.db.data() : nullptr;
    if (shape.gelu_before) {
      op.backward_gelu(input.samples, before.data(), x.data(), y.data(), dy.data(), dx.data(),
                       outcome.dw.data(), db);
    } else {
      op.backward(input.samples, x.data(), y.data(), dy.data(), dx.data(), outcome.dw.data(), db);
    }
    outcome.y = y.floats();
    outcome.activated = activated.floats();
    outcome.dx = dx.floats();
    return outcome;
  }

  Outcome separate(WeightedOp& op, const LinearShape& shape, DataType type,
                   const WeightedInput& input) {
    const std::int64_t in = std::ssize(input.x), out = std::ssize(input.dy);
    const Array before(type, input.x), weights(type, input.weights), bias(type, input.bias);
    const Array x = activated_input(shape, type, before, in);
    Array y(type, out), activated(type, out), dy(type, input.dy), by_x(type, in), dx(type, in);
    Outcome outcome{{}, {}, {}, Floats(input.weights.size()), Floats(input.bias.size())};
    set_weights(op, shape, weights, input.bias, bias);
    op.forward(input.samples, x.data(), y.data());
    op.backward(input.samples, x.data(), y.data(), dy.data(), by_x.data(), outcome.dw.data(),
                shape.bias ? outcome.db.data() : nullptr);
    outcome.y = y.floats();
    outcome.dx = by_x.floats();
    if (shape.gelu_after) {
      gelu(shape.gelu_after, out, type)->forward(out, y.data(), activated.data());
    }
    outcome.activated = activated.floats();
    if (shape.gelu_before) {
      gelu(shape.gelu_before, in, type)->backward(in, before.data(), by_x.data(), dx.data());
      outcome.dx = dx.floats();
    }
    return outcome;
  }
};

// Sizes that a library's epilogue accepts, and odd sizes that it refuses.
constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{64, 48}, {48, 136}, {17, 35}, {3, 1}};

TEST_P(LinearGelu, BehindTheLayerIsTheLayerAndThenGelu) {
  for (const auto& [inputs, outputs] : kSizes) {
    for (const GeluForm form : kForms) {
      for (const bool bias : {true, false}) {
        for (const DataType type : kTypes) {
          expect_same({inputs, outputs, bias, false, form, std::nullopt}, type);
        }
      }
    }
  }
}

TEST_P(LinearGelu, BeforeTheLayerTakesItsGradientBack) {
  for (const auto& [inputs, outputs] : kSizes) {
    for (const GeluForm form : kForms) {
      for (const bool bias : {true, false}) {
        for (const DataType type : kTypes) {
          expect_same({inputs, outputs, bias, false, std::nullopt, form}, type);
        }
      }
    }
  }
}

TEST_P(LinearGelu, OnBothSidesAndBeforeReluAreFineToo) {
  for (const DataType type : kTypes) {
    expect_same({40, 24, true, false, GeluForm::kTanh, GeluForm::kExact}, type);
    expect_same({40, 24, true, true, std::nullopt, GeluForm::kTanh}, type);
  }
}

// Recomputing activations, and an evaluation, use the layer without its GELUs.
TEST_P(LinearGelu, LeavesThePlainLayerAsItIs) {
  const LinearShape shape{40, 24, true, false, GeluForm::kTanh, GeluForm::kTanh};
  auto beside = must(here().linear(shape, {9, DataType::kFloat32}));
  auto plain = must(here().linear({40, 24, true, false}, {9, DataType::kFloat32}));
  const WeightedInput input = input_for(shape, 9);
  const WeightedOutput found = run(*beside, DataType::kFloat32, input);
  expect_close(found, run(*plain, DataType::kFloat32, input), 0, "plain");
}

TEST_P(LinearGelu, NeedNotGiveTheGradientByItsInput) {
  const LinearShape shape{40, 24, true, false, std::nullopt, GeluForm::kTanh};
  auto op = must(here().linear(shape, {9, DataType::kFloat32}));
  const WeightedInput input = input_for(shape, 9);
  const Outcome expected = fused(*op, shape, DataType::kFloat32, input);
  const Array before(DataType::kFloat32, input.x);
  const Array x = activated_input(shape, DataType::kFloat32, before, std::ssize(input.x));
  Array dy(DataType::kFloat32, input.dy);
  Floats dw(input.weights.size()), db(input.bias.size());
  op->backward_gelu(9, before.data(), x.data(), nullptr, dy.data(), nullptr, dw.data(), db.data());
  EXPECT_EQ(dw, expected.dw);
  EXPECT_EQ(db, expected.db);
}

// Differentiates sum(GELU(GELU(x) W' + b) dy). One layer with a GELU on either side suffices, if a
// separate GELU takes dy back through the second.
TEST_P(LinearGelu, GradientsAreTheDerivatives) {
  for (const GeluForm form : kForms) {
    const LinearShape shape{6, 8, true, false, form, form};
    auto op = must(here().linear(shape, {3, DataType::kFloat32}));
    WeightedInput input = input_for(shape, 3);
    const Floats last = input.dy;
    const Floats y = fused(*op, shape, DataType::kFloat32, input).y;
    Array dy(DataType::kFloat32, input.dy);
    const Array at(DataType::kFloat32, y);
    const std::int64_t count = std::ssize(y);
    gelu(form, count, DataType::kFloat32)->backward(count, at.data(), dy.data(), dy.data());
    input.dy = dy.floats();
    const Outcome result = fused(*op, shape, DataType::kFloat32, input);
    const auto f = [&] {
      return dot(fused(*op, shape, DataType::kFloat32, input).activated, last);
    };
    constexpr float kStep = 1.0F / 256;
    constexpr double kTolerance = 2e-3;  // fp32 rounding of y over the step
    const std::string what = describe(shape, DataType::kFloat32, 3);
    expect_gradient(f, input.x.data(), result.dx, kStep, kTolerance, what + ": dx");
    expect_gradient(f, input.weights.data(), result.dw, kStep, kTolerance, what + ": dw");
    expect_gradient(f, input.bias.data(), result.db, kStep, kTolerance, what + ": db");
  }
}

TEST_P(LinearGelu, RefusesReluAndGeluBehindOneLayer) {
  const LinearShape shape{4, 5, true, true, GeluForm::kTanh, std::nullopt};
  const auto made = here().linear(shape, {1, DataType::kFloat32});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("both ReLU and GELU"));
}

INSTANTIATE_TEST_SUITE_P(, LinearGelu, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
