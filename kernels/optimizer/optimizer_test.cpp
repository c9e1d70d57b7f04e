// Optimisers of every backend: against PyTorch, several steps each, and bit for bit against the
// reference.
#include <cmath>
#include <map>

#include "kernels/optimizer/formulas.h"
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

const std::map<std::string, UpdateRule> kRules = {{"sgd", UpdateRule::kSgd},
                                                  {"adam", UpdateRule::kAdam},
                                                  {"adamw", UpdateRule::kAdamW},
                                                  {"rmsprop", UpdateRule::kRmsProp},
                                                  {"lamb", UpdateRule::kLamb}};

// The fields of a step's decision that an update reads.
StepControl step(std::int64_t number, float learning_rate = 0.1F, float gradient_scale = 1) {
  StepControl control;
  control.learning_rate = learning_rate;
  control.gradient_scale = gradient_scale;
  control.apply = 1;
  control.updates = number;
  return control;
}

void update(Backend& backend, UpdateRule rule, const UpdateSettings& settings, float weight_decay,
            const StepControl& control, const Floats& gradient, State& state) {
  UpdateBuffers part{static_cast<std::int64_t>(gradient.size()),
                     state.weights.data(),
                     gradient.data(),
                     state.state1.data(),
                     state.state2.data(),
                     state.rounded.data()};
  part.weight_decay = weight_decay;
  backend.update(rule, {part}, settings)->run(&control);
  backend.wait();
}

UpdateSettings settings_of(const Json& s) {
  const auto number = [&](std::string_view key, double otherwise) {
    const Json* const found = s.find(key);
    return found == nullptr ? otherwise : found->as_double();
  };
  UpdateSettings settings;
  settings.momentum = number("momentum", 0);
  settings.nesterov = boolean_of(s, "nesterov");
  settings.beta1 = number("beta1", settings.beta1);
  settings.beta2 = number("beta2", settings.beta2);
  settings.epsilon = number("epsilon", settings.epsilon);
  settings.smoothing = number("smoothing", settings.smoothing);
  return settings;
}

class Optimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(Optimizer, AgreesWithPyTorchStepByStep) {
  const auto tested = backend(GetParam());
  for (const Json& c : golden_cases("optimizer")) {
    const std::string name = c.find("optimizer")->as_string();
    const Json& settings = *c.find("settings");
    State state = start(floats_of(c, "w"));
    std::int64_t number = 0;
    for (const Json& golden : c.find("steps")->as_array()) {
      ++number;
      update(*tested, kRules.at(name), settings_of(settings), number_of(settings, "weightDecay", 0),
             step(number), floats_of(golden, "gradient"), state);
      expect_close(state.weights, floats_of(golden, "w"), 1e-5,
                   name + settings.dump() + " step " + std::to_string(number));
    }
  }
}

TEST_P(Optimizer, IsTheSameInEveryBackendBitForBit) {
  for (const auto& [name, rule] : kRules) {
    UpdateSettings settings;
    settings.momentum = 0.9;
    State found = start(random_floats(5001, 1));
    State expected = start(random_floats(5001, 1));
    for (std::int64_t number = 1; number <= 3; ++number) {
      const Floats gradient = random_floats(5001, static_cast<std::uint64_t>(number));
      const StepControl control = step(number, 0.01F, 1.0F / 3);
      update(*backend(GetParam()), rule, settings, 0.01F, control, gradient, found);
      update(*backend("reference"), rule, settings, 0.01F, control, gradient, expected);
    }
    EXPECT_EQ(found.weights, expected.weights) << name;
    EXPECT_EQ(found.rounded, expected.rounded) << name;
  }
}

TEST_P(Optimizer, WorksWithoutStateThatItDoesNotNeed) {
  const auto tested = backend(GetParam());
  const StepControl first = step(1);
  const auto run = [&](UpdateRule rule, const UpdateBuffers& part) {
    tested->update(rule, {part}, {})->run(&first);
    tested->wait();
  };
  Floats with = random_floats(40, 1), without = with, state1(40), state2(40), same1(40);
  const Floats gradient = random_floats(40, 2);
  run(UpdateRule::kSgd, {40, with.data(), gradient.data(), state1.data(), nullptr, nullptr});
  run(UpdateRule::kSgd, {40, without.data(), gradient.data(), nullptr, nullptr, nullptr});
  EXPECT_EQ(with, without);
  run(UpdateRule::kRmsProp,
      {40, with.data(), gradient.data(), same1.data(), state2.data(), nullptr});
  std::fill(same1.begin(), same1.end(), 0.0F);
  run(UpdateRule::kRmsProp, {40, without.data(), gradient.data(), same1.data(), nullptr, nullptr});
  EXPECT_EQ(with, without);
}

// With zero weights the trust ratio is 1, or they could never move.
TEST_P(Optimizer, LambTakesAdamsStepFromZero) {
  const auto tested = backend(GetParam());
  const Floats gradient = {3, -2};
  State lamb = start({0, 0}), adam = start({0, 0});
  update(*tested, UpdateRule::kLamb, {}, 0, step(1), gradient, lamb);
  update(*tested, UpdateRule::kAdam, {}, 0, step(1), gradient, adam);
  expect_close(lamb.weights, adam.weights, 1e-6, "weights");
}

TEST_P(Optimizer, LambMovesAWholeTensorInProportionToItsLength) {
  const auto tested = backend(GetParam());
  const Floats gradient = random_floats(40, 2);
  Floats weights = random_floats(40, 1), tenfold = weights;
  for (float& weight : tenfold) weight *= 10;
  State small = start(weights), large = start(tenfold);
  update(*tested, UpdateRule::kLamb, {}, 0, step(1), gradient, small);
  update(*tested, UpdateRule::kLamb, {}, 0, step(1), gradient, large);
  for (float& weight : large.weights) weight /= 10;
  expect_close(large.weights, small.weights, 1e-6, "weights");
}

TEST_P(Optimizer, ScalesTheGradient) {
  State state = start({1});
  update(*backend(GetParam()), UpdateRule::kSgd, {}, 0, step(1, 0.5F, 1.0F / 3), {6}, state);
  EXPECT_FLOAT_EQ(state.weights[0], 0);
}

TEST_P(Optimizer, UpdatesPartsWithDecaysOfTheirOwn) {
  const auto tested = backend(GetParam());
  Floats weights = {1, 1}, gradient = {0, 0};
  UpdateBuffers decays{1, weights.data(), gradient.data()};
  decays.weight_decay = 0.5F;
  const UpdateBuffers spared{1, weights.data() + 1, gradient.data() + 1};
  const StepControl first = step(1);
  tested->update(UpdateRule::kSgd, {decays, spared}, {})->run(&first);
  tested->wait();
  EXPECT_THAT(weights, ::testing::ElementsAre(1 - 0.1F * 0.5F, 1));
}

TEST_P(Optimizer, APartMayHaveAFactorOfTheLearningRate) {
  const auto tested = backend(GetParam());
  for (const auto& [name, rule] : kRules) {
    SCOPED_TRACE(name);
    State scaled = start(random_floats(50, 1)), plain = scaled;
    const Floats gradient = random_floats(50, 2);
    const auto run = [&](State& state, double rate_scale, float rate) {
      UpdateBuffers part{50,
                         state.weights.data(),
                         gradient.data(),
                         state.state1.data(),
                         state.state2.data(),
                         state.rounded.data()};
      part.weight_decay = 0.1F;
      part.rate_scale = rate_scale;
      const StepControl control = step(1, rate);
      tested->update(rule, {part}, {})->run(&control);
      tested->wait();
    };
    run(scaled, 0.25, 0.5F);
    run(plain, 1, 0.125F);
    EXPECT_EQ(scaled.weights, plain.weights);
    EXPECT_EQ(scaled.state1, plain.state1);
  }
}

TEST_P(Optimizer, ChangesNothingInAStepThatIsUndone) {
  for (const auto& [name, rule] : kRules) {
    State state = start(random_floats(40, 1));
    StepControl undone = step(1);
    undone.apply = 0;
    update(*backend(GetParam()), rule, {}, 0.1F, undone, random_floats(40, 2), state);
    EXPECT_EQ(state.weights, random_floats(40, 1)) << name;
    EXPECT_EQ(state.state1, Floats(40)) << name;
    EXPECT_EQ(state.rounded, std::vector<std::uint16_t>(40)) << name;
  }
}

// Parts as in a network's flat arrays: of any length, not all aligned for vector instructions.
// `mask`: of every second part.
std::vector<UpdateBuffers> parts_of(State& state, const Floats& gradient, DataType rounded_type,
                                    const std::uint16_t* mask = nullptr) {
  std::vector<UpdateBuffers> parts;
  std::ptrdiff_t begin = 0;
  for (const std::int64_t count : {5000, 1, 7, 4096, 4097, 3, 8192}) {
    UpdateBuffers part{count,
                       state.weights.data() + begin,
                       gradient.data() + begin,
                       state.state1.data() + begin,
                       state.state2.data() + begin,
                       parts.size() % 2 == 0 ? state.rounded.data() + begin : nullptr,
                       rounded_type};
    part.weight_decay = 0.01F * static_cast<float>(parts.size());
    if (parts.size() % 2 == 0) part.mask = mask;
    parts.push_back(part);
    begin += count;
  }
  return parts;
}

TEST_P(Optimizer, UpdatesPartsOfAnySizeAnywhereBitForBit) {
  const auto tested = backend(GetParam()), reference = backend("reference");
  const Floats gradient = random_floats(21396, 2);
  for (const auto& [name, rule] : kRules) {
    for (const DataType rounded : {DataType::kBFloat16, DataType::kFloat16}) {
      const UpdateSettings settings{.momentum = 0.9, .nesterov = true};
      State found = start(random_floats(std::ssize(gradient), 1)), expected = found;
      const auto update = tested->update(rule, parts_of(found, gradient, rounded), settings);
      const auto same = reference->update(rule, parts_of(expected, gradient, rounded), settings);
      for (std::int64_t number = 1; number <= 3; ++number) {
        const StepControl control = step(number, 0.01F, 1.0F / 3);
        update->run(&control);
        same->run(&control);
        tested->wait();
      }
      EXPECT_EQ(found.weights, expected.weights) << name;
      EXPECT_EQ(found.state1, expected.state1) << name;
      EXPECT_EQ(found.state2, expected.state2) << name;
      EXPECT_EQ(found.rounded, expected.rounded) << name;
    }
  }
}

TEST_P(Optimizer, KeepsMaskedWeightsAtZeroAndNoOthers) {
  const std::vector<std::uint16_t> mask = {0xF0F0, 0x0001, 0x00FF};
  for (const auto& [name, rule] : kRules) {
    State state = start(random_floats(40, 1)), free = state;
    const Floats gradient = random_floats(40, 2);
    UpdateBuffers part{40,
                       state.weights.data(),
                       gradient.data(),
                       state.state1.data(),
                       state.state2.data(),
                       state.rounded.data()};
    part.mask = mask.data();
    const StepControl first = step(1);
    const auto tested = backend(GetParam());
    tested->update(rule, {part}, {})->run(&first);
    tested->wait();
    update(*tested, rule, {}, 0, first, gradient, free);
    for (std::size_t i = 0; i < 40; ++i) {
      const bool kept = (mask[i / 16] >> (i % 16) & 1) != 0;
      EXPECT_EQ(state.weights[i], kept ? free.weights[i] : 0) << name << " " << i;
      EXPECT_EQ(state.rounded[i], kept ? free.rounded[i] : 0) << name << " " << i;
    }
  }
}

TEST_P(Optimizer, AKeptWeightIsNeverZero) {
  State state = start({1, 1});
  const Floats gradient = {2, 2};
  const std::uint16_t mask = 1;
  UpdateBuffers part{2, state.weights.data(), gradient.data()};
  part.mask = &mask;
  const StepControl halves = step(1, 0.5F);
  const auto tested = backend(GetParam());
  tested->update(UpdateRule::kSgd, {part}, {})->run(&halves);
  tested->wait();
  EXPECT_THAT(state.weights, ::testing::ElementsAre(kSmallestKept, 0));
}

TEST_P(Optimizer, MasksPartsAnywhereBitForBit) {
  const auto tested = backend(GetParam()), reference = backend("reference");
  const Floats gradient = random_floats(21396, 2);
  std::vector<std::uint16_t> mask;
  for (std::size_t i = 0; i < 600; ++i) mask.push_back(static_cast<std::uint16_t>(i * 40503));
  for (const auto& [name, rule] : kRules) {
    State found = start(random_floats(std::ssize(gradient), 1)), expected = found;
    const StepControl first = step(1, 0.01F);
    constexpr DataType kType = DataType::kBFloat16;
    tested->update(rule, parts_of(found, gradient, kType, mask.data()), {})->run(&first);
    reference->update(rule, parts_of(expected, gradient, kType, mask.data()), {})->run(&first);
    tested->wait();
    EXPECT_EQ(found.weights, expected.weights) << name;
    EXPECT_EQ(found.rounded, expected.rounded) << name;
  }
}

// PyTorch takes 1 - beta2 in double: for 0.999 that is 0.001 to the last bit of a float.
TEST_P(Optimizer, BlendsByDoublePrecisionSettings) {
  for (const UpdateRule rule : {UpdateRule::kAdam, UpdateRule::kLamb}) {
    State state = start(Floats(8));
    update(*backend(GetParam()), rule, {}, 0, step(1), Floats(8, 1.0F), state);
    for (const float first : state.state1) EXPECT_EQ(first, static_cast<float>(1 - 0.9));
    for (const float second : state.state2) EXPECT_EQ(second, 0.001F);
  }
  State state = start(Floats(8));
  update(*backend(GetParam()), UpdateRule::kRmsProp, {}, 0, step(1), Floats(8, 1.0F), state);
  for (const float mean : state.state1) EXPECT_EQ(mean, static_cast<float>(1 - 0.99));
}

TEST_P(Optimizer, AgreesWithTheReferenceAfterManyUpdates) {
  const Floats gradient = random_floats(40, 2);
  for (const std::int64_t number : {100, 12345, 10'000'000}) {
    State found = start(random_floats(40, 1)), expected = found;
    update(*backend(GetParam()), UpdateRule::kAdam, {}, 0, step(number), gradient, found);
    update(*backend("reference"), UpdateRule::kAdam, {}, 0, step(number), gradient, expected);
    EXPECT_EQ(found.weights, expected.weights) << number;
  }
}

TEST(Power, IsThatOfTheLibrary) {
  for (const double base : {0.9, 0.99, 0.999, 0.9999}) {
    for (const std::int64_t exponent : {1, 2, 3, 10, 1000, 54321, 10'000'000}) {
      const double expected = std::pow(base, static_cast<double>(exponent));
      EXPECT_NEAR(power(base, exponent), expected, 1e-12) << base << "^" << exponent;
    }
  }
  EXPECT_EQ(power(0.9, 1), 0.9);
  EXPECT_EQ(power(0, 5), 0);
}

INSTANTIATE_TEST_SUITE_P(, Optimizer, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
