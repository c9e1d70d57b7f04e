// Optimisers of every backend: against PyTorch, several steps each, and bit for bit against the
// reference.
#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

struct State {
  Floats weights, state1, state2;
  std::vector<std::uint16_t> rounded;
};

State start(const Floats& weights) {
  return {weights, Floats(weights.size()), Floats(weights.size()),
          std::vector<std::uint16_t>(weights.size())};
}

void update(Backend& backend, const std::string& optimizer, const UpdateSettings& settings,
            const Floats& gradient, State& state) {
  const UpdateBuffers buffers{static_cast<std::int64_t>(gradient.size()),
                              state.weights.data(),
                              gradient.data(),
                              state.state1.data(),
                              state.state2.data(),
                              state.rounded.data()};
  if (optimizer == "sgd") backend.sgd(buffers, settings);
  if (optimizer == "adam") backend.adam(buffers, settings);
  if (optimizer == "adamw") backend.adamw(buffers, settings);
  if (optimizer == "rmsprop") backend.rmsprop(buffers, settings);
  if (optimizer == "lamb") backend.lamb(buffers, settings);
}

UpdateSettings settings_of(const Json& s) {
  UpdateSettings settings;
  settings.learning_rate = 0.1F;
  settings.momentum = number_of(s, "momentum", 0);
  settings.nesterov = boolean_of(s, "nesterov");
  settings.beta1 = number_of(s, "beta1", settings.beta1);
  settings.beta2 = number_of(s, "beta2", settings.beta2);
  settings.epsilon = number_of(s, "epsilon", settings.epsilon);
  settings.smoothing = number_of(s, "smoothing", settings.smoothing);
  settings.weight_decay = number_of(s, "weightDecay", 0);
  return settings;
}

class Optimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(Optimizer, AgreesWithPyTorchStepByStep) {
  const auto tested = backend(GetParam());
  for (const Json& c : golden_cases("optimizer")) {
    const std::string name = c.find("optimizer")->as_string();
    UpdateSettings settings = settings_of(*c.find("settings"));
    State state = start(floats_of(c, "w"));
    settings.step = 0;
    for (const Json& step : c.find("steps")->as_array()) {
      ++settings.step;
      update(*tested, name, settings, floats_of(step, "gradient"), state);
      expect_close(state.weights, floats_of(step, "w"), 1e-5,
                   name + c.find("settings")->dump() + " step " + std::to_string(settings.step));
    }
  }
}

TEST_P(Optimizer, IsTheSameInEveryBackendBitForBit) {
  for (const std::string name : {"sgd", "adam", "adamw", "rmsprop", "lamb"}) {
    UpdateSettings settings;
    settings.momentum = 0.9F;
    settings.weight_decay = 0.01F;
    settings.gradient_scale = 1.0F / 3;
    State found = start(random_floats(5001, 1));
    State expected = start(random_floats(5001, 1));
    for (settings.step = 1; settings.step <= 3; ++settings.step) {
      const Floats gradient = random_floats(5001, static_cast<std::uint64_t>(settings.step));
      update(*backend(GetParam()), name, settings, gradient, found);
      update(*backend("reference"), name, settings, gradient, expected);
    }
    EXPECT_EQ(found.weights, expected.weights) << name;
    EXPECT_EQ(found.rounded, expected.rounded) << name;
  }
}

TEST_P(Optimizer, WorksWithoutStateThatItDoesNotNeed) {
  const auto tested = backend(GetParam());
  Floats with = random_floats(40, 1), without = with, state1(40), state2(40), same1(40);
  const Floats gradient = random_floats(40, 2);
  const UpdateSettings settings;
  tested->sgd({40, with.data(), gradient.data(), state1.data(), nullptr, nullptr}, settings);
  tested->sgd({40, without.data(), gradient.data(), nullptr, nullptr, nullptr}, settings);
  EXPECT_EQ(with, without);
  tested->rmsprop({40, with.data(), gradient.data(), same1.data(), state2.data(), nullptr},
                  settings);
  std::fill(same1.begin(), same1.end(), 0.0F);
  tested->rmsprop({40, without.data(), gradient.data(), same1.data(), nullptr, nullptr}, settings);
  EXPECT_EQ(with, without);
}

// Nothing to be as long as: the step is Adam's, as a weight of zero could never leave otherwise.
TEST_P(Optimizer, LambTakesAdamsStepFromZero) {
  const auto tested = backend(GetParam());
  const Floats gradient = {3, -2};
  State lamb = start({0, 0}), adam = start({0, 0});
  update(*tested, "lamb", {}, gradient, lamb);
  update(*tested, "adam", {}, gradient, adam);
  expect_close(lamb.weights, adam.weights, 1e-6, "weights");
}

TEST_P(Optimizer, LambMovesAWholeTensorInProportionToItsLength) {
  const auto tested = backend(GetParam());
  const Floats gradient = random_floats(40, 2);
  Floats weights = random_floats(40, 1), tenfold = weights;
  for (float& weight : tenfold) weight *= 10;
  State small = start(weights), large = start(tenfold);
  update(*tested, "lamb", {}, gradient, small);
  update(*tested, "lamb", {}, gradient, large);
  for (float& weight : large.weights) weight /= 10;
  expect_close(large.weights, small.weights, 1e-6, "weights");
}

TEST_P(Optimizer, ScalesTheGradient) {
  const auto tested = backend(GetParam());
  Floats weights = {1}, gradient = {6};
  UpdateSettings settings;
  settings.learning_rate = 0.5F;
  settings.gradient_scale = 1.0F / 3;
  tested->sgd({1, weights.data(), gradient.data(), nullptr, nullptr, nullptr}, settings);
  EXPECT_FLOAT_EQ(weights[0], 0);
}

INSTANTIATE_TEST_SUITE_P(, Optimizer, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
