#include "trainer/model/activation_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/model/gpt.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/layer_kinds.h"
#include "trainer/model/resnet.h"
#include "trainer/model/wide_residuals.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;
using testing::IsEmpty;

NetworkPlan network_of(std::vector<api::LayerConfig> layers,
                       const SampleFormat& format = {{16, 16, 2}, 3, false, ""}) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  const auto plan = plan_network(model, format);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return *plan;
}

NetworkPlan gpt2_small() {
  api::ModelConfig model;
  model.gpt = api::GptConfig{.layers = 12, .heads = 12, .width = 768};
  model.dropout = 0.1;
  return *plan_network(model, {{1024, 1, 1}, 50257, true, ""});
}

NetworkPlan resnet_50() {
  return network_of(resnet50(1000, ResNetStem::kLarge), {{224, 224, 3}, 1000, false, ""});
}

// Models the memory: the last writer of each line.
class Memory {
 public:
  Memory(const NetworkPlan& network, const ActivationPlan& plan)
      : network_(network), lines_(static_cast<std::size_t>(plan.elements / kLine), "nothing") {
    for (const ActivationStep& step : plan.forward) run(step);
    expect("output", std::ssize(network.layers) - 1, plan.last().y);
    write("gradient", std::ssize(network.layers) - 1, plan.logits_gradient);
    for (const ActivationStep& step : plan.backward) {
      step.forward ? run(step) : step_back(step);
    }
  }

 private:
  static constexpr std::int64_t kLine = 32;

  std::span<std::string> lines_of(std::int64_t layer, std::int64_t place) {
    const LayerPlan& giver = network_.layer(layer);
    const std::int64_t size = giver.output.size() * (giver.wide ? 2 : 1);
    EXPECT_EQ(place % kLine, 0);
    const std::int64_t end = (place + size + kLine - 1) / kLine;
    EXPECT_LE(end, std::ssize(lines_));
    return {lines_.begin() + place / kLine, lines_.begin() + end};
  }
  void write(const std::string& what, std::int64_t layer, std::int64_t place) {
    std::ranges::fill(lines_of(layer, place), what + " " + std::to_string(layer));
  }
  void expect(const std::string& what, std::int64_t layer, std::int64_t place) {
    if (layer == kNetworkInput) return;
    const std::string wanted = what + " " + std::to_string(layer);
    for (const std::string& line : lines_of(layer, place)) {
      ASSERT_EQ(line, wanted) << "at " << place;
    }
  }

  // A step must not write over its inputs.
  void run(const ActivationStep& step) {
    const LayerPlan& layer = network_.layer(step.layer);
    if (step.sum != kNowhere) {  // a norm with the sum before it
      write("output", layer.source, step.sum);
      write("output", step.layer, step.y);
      return expect_summands(network_.layer(layer.source), step.x, step.shortcut);
    }
    if (layer.ends_block) {  // a batch norm with the sum behind it
      const LayerPlan& add = network_.layer(step.layer + 1);
      write("output", step.layer + 1, step.y);
      expect("output", layer.source, step.x);
      return expect("output", add.source == step.layer ? add.shortcut : add.source, step.shortcut);
    }
    if (step.gelu != kNowhere) write("output", step.layer + 1, step.gelu);
    write("output", step.layer, step.y);
    if (layer.type == LayerType::kAdd) return expect_summands(layer, step.x, step.shortcut);
    expect("output", layer.source, step.x);
  }
  void expect_summands(const LayerPlan& add, std::int64_t x, std::int64_t shortcut) {
    expect("output", add.source, x);
    expect("output", add.shortcut, shortcut);
  }

  // A gradient is complete when its layer steps back, so it does not matter which contributor wrote
  // it last; a gradient that a layer and its shortcut share belongs to both.
  void step_back(const ActivationStep& step) {
    const LayerPlan& layer = network_.layer(step.layer);
    if (reads_of(layer).input) expect("output", layer.source, step.x);
    if (reads_of(layer).output) expect("output", step.layer, step.y);
    const std::int64_t target = network_.gradient_target(layer);
    if (layer.gelu_before) expect("output", target, step.before);
    back_.insert(step.layer);
    if (layer.ends_block && !back_.contains(step.layer + 1)) {
      step_back_end(step);
    } else {
      expect("gradient", shared(step.layer), step.dy);
    }
    if (step.sum != kNowhere) expect("gradient", shared(target), step.sum);
    if (layer.type == LayerType::kAdd) return step_back_add(layer, step);
    if (step.adds) expect("gradient", shared(target), step.dx);
    if (step.dx != kNowhere && !step.adds) write("gradient", target, step.dx);
  }

  // Checks a batch norm with the add behind it. The gradient's other part must be unchanged.
  void step_back_end(const ActivationStep& step) {
    const std::int64_t i = step.layer + 1;
    const LayerPlan& add = network_.layer(i);
    if (add.relu) expect("output", i, step.y);
    expect("gradient", shared(i), step.dy);
    if (step.other != kNowhere) expect("gradient", i, step.other);
    share_[add.source == step.layer ? add.shortcut : add.source] = shared(i);
  }

  void step_back_add(const LayerPlan& add, const ActivationStep& step) {
    if (step.adds) expect("gradient", shared(add.shortcut), step.dx);
    if (step.dx == kNowhere) {
      share_[add.shortcut] = share_[add.source] = shared(step.layer);
      return;
    }
    if (!step.adds) write("gradient", add.shortcut, step.dx);
    share_[add.source] = shared(step.layer);
  }
  std::int64_t shared(std::int64_t layer) const {
    const auto found = share_.find(layer);
    return found == share_.end() ? layer : found->second;
  }

  const NetworkPlan& network_;
  std::vector<std::string> lines_;
  std::set<std::int64_t> back_;                 // layers that have stepped back
  std::map<std::int64_t, std::int64_t> share_;  // the layer whose gradient it shares
};

const auto kRelu = simple(LayerType::kRelu);
const auto kGelu = simple(LayerType::kGelu);
const auto kNorm = simple(LayerType::kBatchNorm);
const auto kResidual = simple(LayerType::kResidual);
const auto kShortcut = simple(LayerType::kShortcut);
const auto kAdd = simple(LayerType::kAdd);

// Each step reads buffers that were written for it, and have not been overwritten.
TEST(ActivationPlan, EveryStepFindsWhatItReads) {
  const std::vector<NetworkPlan> networks = {
      network_of({linear(3)}),
      network_of({kRelu, dropout(0.1), linear(3)}),
      network_of({conv(4), kNorm, kRelu, simple(LayerType::kMaxPool), conv(8), kNorm, kRelu,
                  dropout(0.2), simple(LayerType::kAveragePool), linear(20), kRelu, linear(3)}),
      network_of({conv(4), kResidual, conv(4), kResidual, kRelu, conv(4), kAdd, kRelu, conv(4),
                  kShortcut, kResidual, conv(4), kAdd, kAdd, linear(3)}),
      network_of({kResidual, conv(2), kAdd, kResidual, conv(2), kAdd, linear(3)}),
      network_of(
          {linear(8), kGelu, linear(8), kGelu, linear(8), kResidual, kGelu, kAdd, linear(3)}),
      network_of({kResidual, kNorm, kAdd, kRelu, conv(2), kResidual, conv(2), kNorm, kShortcut,
                  conv(2), kNorm, kAdd, linear(3)}),
      network_of({conv(4),   kResidual, kResidual, conv(4), kNorm,     kAdd,  kRelu,
                  conv(4),   kNorm,     kAdd,      kRelu,   kResidual, kNorm, kAdd,
                  linear(3), kResidual, linear(3), kNorm,   kAdd,      kRelu}),
      network_of(resnet18(3, ResNetStem::kSmall)),
      gpt2_small(),
      with_fp32_residuals(gpt2_small()),
  };
  for (const NetworkPlan& network : networks) {
    for (const bool recompute : {false, true}) {
      SCOPED_TRACE(network.layers.back().name + (recompute ? ", recomputed" : ""));
      const Memory memory(network, plan_activations(network, recompute));
    }
  }
}

std::vector<std::int64_t> repeated(const ActivationPlan& plan) {
  std::vector<std::int64_t> layers;
  for (const ActivationStep& step : plan.backward) {
    if (!step.forward) continue;
    if (step.sum != kNowhere) layers.push_back(step.layer - 1);
    layers.push_back(step.layer);
    if (step.gelu != kNowhere) layers.push_back(step.layer + 1);
  }
  EXPECT_EQ(std::ssize(layers), plan.repeated);
  return layers;
}

// Layers that run together also write GELUs, sums, and the sums of batch norms.
TEST(ActivationPlan, LayersRunTogetherWhereOneKernelDoesBoth) {
  const auto steps = [](const NetworkPlan& network) {
    return std::ssize(plan_activations(network, false).forward);
  };
  EXPECT_EQ(steps(network_of({linear(8), kGelu, linear(8), kGelu, linear(3)})), 3);
  EXPECT_EQ(steps(network_of({linear(8), kGelu, dropout(0.1), linear(3)})), 4);
  EXPECT_EQ(steps(network_of({conv(2), kResidual, conv(2), kNorm, kAdd, kRelu, linear(3)})), 4);
  EXPECT_EQ(steps(network_of(
                {conv(2), kResidual, conv(2), kAdd, simple(LayerType::kLayerNorm), linear(3)})),
            4);
}

// A repeated GELU must have run alone the first time: fused into a product its bits may differ.
TEST(ActivationPlan, LayersDoNotRunTogetherOverACut) {
  std::vector<api::LayerConfig> layers;
  for (int i = 0; i < 6; ++i) layers.insert(layers.end(), {linear(64), kGelu});
  layers.push_back(linear(3));
  const ActivationPlan plan = plan_activations(network_of(layers), true);
  ASSERT_GT(plan.repeated, 0);
  for (const ActivationStep& again : plan.backward) {
    if (!again.forward) continue;
    const auto first = std::ranges::find(plan.forward, again.layer, &ActivationStep::layer);
    ASSERT_NE(first, plan.forward.end());
    EXPECT_EQ(first->gelu == kNowhere, again.gelu == kNowhere) << again.layer;
  }
}

TEST(ActivationPlan, RepeatsNothingUnlessAsked) {
  EXPECT_EQ(plan_activations(gpt2_small(), false).repeated, 0);
}

// Ten outputs, nine of them of 64. With segments of three layers, the segments' last outputs are
// kept; the peak is in the computation of a segment's gradients: two other segments' outputs, its
// own, and two gradients.
TEST(ActivationPlan, AChainIsCutSoThatItNeedsLeast) {
  std::vector<api::LayerConfig> layers(9, linear(64));
  layers.push_back(linear(3));
  const NetworkPlan network = network_of(layers);
  EXPECT_EQ(plan_activations(network, false).elements, (9 + 1) * 64 + 32);
  const ActivationPlan plan = plan_activations(network, true);
  EXPECT_THAT(repeated(plan), ElementsAre(6, 7, 3, 4, 0, 1));
  EXPECT_EQ(plan.elements, 6 * 64);
}

TEST(ActivationPlan, RepeatsNothingWhereThatSavesNothing) {
  EXPECT_THAT(repeated(plan_activations(network_of({linear(64), kRelu, linear(3)}), true)),
              IsEmpty());
}

// A block's last linear layer, its dropout and the sum do not need their own outputs.
TEST(ActivationPlan, ASegmentRunsAgainUpToWhatIsNeeded) {
  const NetworkPlan network = gpt2_small();
  for (const std::int64_t layer : repeated(plan_activations(network, true))) {
    const auto i = static_cast<std::size_t>(layer);
    if (network.layers[i + 1].type != LayerType::kDropout) continue;
    const bool again = std::ranges::count(repeated(plan_activations(network, true)), layer + 1) > 0;
    EXPECT_TRUE(again) << network.layers[i].name << " runs again, and no layer needs it";
  }
}

// Outputs of the layers; the gradient by the logits overwrites the logits.
TEST(ActivationPlan, KeepsNoMoreThanTheGradientsNeed) {
  for (const NetworkPlan& network : {gpt2_small(), resnet_50()}) {
    std::int64_t outputs = 0;
    for (const LayerPlan& layer : network.layers) outputs += layer.output.size();
    const auto elements = static_cast<double>(plan_activations(network, false).elements);
    EXPECT_LT(elements, 0.85 * static_cast<double>(outputs));
  }
}

// Decision 21 has these numbers. One more buffer at the ends of blocks would show.
TEST(ActivationPlan, KeepsOfAResNetWhatTheDocsSay) {
  const NetworkPlan network = resnet_50();
  EXPECT_NEAR(static_cast<double>(plan_activations(network, false).elements), 21.0e6, 5e4);
  EXPECT_NEAR(static_cast<double>(plan_activations(network, true).elements), 6.5e6, 5e4);
}

double share_with_recomputation(const NetworkPlan& network) {
  return static_cast<double>(plan_activations(network, true).elements) /
         static_cast<double>(plan_activations(network, false).elements);
}

TEST(ActivationPlan, RecomputationSavesTwoThirdsOfTheMemory) {
  EXPECT_LT(share_with_recomputation(gpt2_small()), 0.3);
  EXPECT_LT(share_with_recomputation(resnet_50()), 0.32);
}

}  // namespace
}  // namespace fettle::trainer
