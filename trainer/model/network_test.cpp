#include "trainer/model/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "kernels/aligned.h"
#include "kernels/backends/reference/backend.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/wide_residuals.h"
#include "trainer/step/precision.h"
#include "trainer/testing/elements.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

// A network with its loss on fixed random inputs, as a function of its parameters.
class Problem {
 public:
  Problem(std::vector<api::LayerConfig> layers, const SampleFormat& format, bool wide)
      : images_(kSamples * format.input.size()), tokens_(kSamples * format.input.size()) {
    api::ModelConfig model;
    model.layers = std::move(layers);
    NetworkPlan plan = *plan_network(model, format);
    if (wide) plan = with_fp32_residuals(plan);
    network_ = *Network::create(plan, *backend_, {kSamples, kernels::DataType::kFloat32}, 11);
    loss_ = backend_->softmax_cross_entropy(plan.classes, kernels::DataType::kFloat32);
    input_ = plan.tokens ? static_cast<const void*>(tokens_.data()) : images_.data();
    Random random(5);
    for (float& value : images_) value = static_cast<float>(random.normal());
    const auto draw_class = [classes = static_cast<std::uint64_t>(plan.classes)](Random& from) {
      return static_cast<std::int32_t>(from.below(classes));
    };
    Random classes(6);
    for (std::int32_t& token : tokens_) token = draw_class(classes);
    labels_.resize(static_cast<std::size_t>(kSamples * plan.predictions()));
    for (std::int32_t& label : labels_) label = draw_class(classes);
    // Normalisation parameters differ from 1 and 0, so that their gradients are meaningful.
    Parameters& parameters = network_->parameters();
    for (std::int64_t i = plan.decayed; i < plan.parameters; ++i) {
      parameters.weights.data()[i] += static_cast<float>(0.3 * random.normal());
    }
  }

  double loss(bool backward) {
    const Pass pass{true, kSamples, 1, &epoch_, indices_.data()};
    network_->weights_changed();
    const auto logits = network_->forward(pass, input_);
    kernels::LossSums sums;
    loss_->run(std::ssize(labels_), logits, labels_.data(), {0.1F}, &sums,
               backward ? network_->logits_gradient() : nullptr);
    if (backward) network_->backward(pass, input_);
    return sums.loss;
  }

  Network& network() { return *network_; }

 private:
  static constexpr std::int64_t kSamples = 5;
  std::unique_ptr<kernels::Backend> backend_ = *kernels::make_backend("reference", 1);
  std::unique_ptr<Network> network_;
  std::unique_ptr<kernels::SoftmaxCrossEntropyOp> loss_;
  kernels::AlignedArray<float> images_;
  kernels::AlignedArray<std::int32_t> tokens_;
  kernels::ConstBuffer input_ = nullptr;  // one of the two
  const std::uint32_t epoch_ = 2;
  const std::vector<std::int64_t> indices_ = {3, 1, 4, 15, 9};
  std::vector<std::int32_t> labels_;
};

// Compares the gradient along random directions with central differences. A direction that crosses
// a kink (of ReLU, of max pooling) within the distance may disagree; most must agree.
void expect_gradients_fit(std::vector<api::LayerConfig> layers,
                          const SampleFormat& format = {{6, 6, 2}, 3, false, ""},
                          bool wide = false) {
  Problem problem(std::move(layers), format, wide);
  Parameters& parameters = problem.network().parameters();
  problem.loss(true);
  const std::vector<float> start = parameters.weights.download();
  const std::span<float> weights = elements(parameters.weights);
  Random random(9);
  constexpr int kDirections = 40;
  int fitting = 0;
  for (int direction = 0; direction < kDirections; ++direction) {
    std::vector<double> step(start.size());
    double expected = 0;
    for (std::size_t i = 0; i < step.size(); ++i) {
      step[i] = random.normal();
      expected += step[i] * elements(parameters.gradients)[i];
    }
    const auto loss_at = [&](double distance) {
      for (std::size_t i = 0; i < step.size(); ++i) {
        weights[i] = static_cast<float>(start[i] + distance * step[i]);
      }
      return problem.loss(false);
    };
    constexpr double kDistance = 1e-4;
    const double found = (loss_at(kDistance) - loss_at(-kDistance)) / (2 * kDistance);
    fitting += std::abs(found - expected) < 0.01 * std::abs(expected) + 0.01;
  }
  EXPECT_GE(fitting, kDirections * 8 / 10);
}

TEST(Network, GradientsOfAnMlpFitFiniteDifferences) {
  expect_gradients_fit({linear(16), simple(LayerType::kRelu), dropout(0.3), linear(3)});
}

TEST(Network, GradientsOfAConvolutionalNetworkFitFiniteDifferences) {
  expect_gradients_fit({conv(4), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
                        simple(LayerType::kMaxPool), conv(5), simple(LayerType::kRelu),
                        simple(LayerType::kGlobalPool), linear(3)});
}

TEST(Network, GradientsFitWhereNothingIsFused) {
  expect_gradients_fit({dropout(0.2), simple(LayerType::kRelu), conv(4), dropout(0.2),
                        simple(LayerType::kRelu), simple(LayerType::kAveragePool), linear(6),
                        simple(LayerType::kBatchNorm), linear(3)});
}

// The embedding's gradient has three parts: tokens, positions, and the tied head. With casts
// between the layers, which only copy in fp32, all gradients must still reach their layers.
TEST(Network, GradientsOfAGptFitFiniteDifferences) {
  const auto layer_norm = simple(LayerType::kLayerNorm);
  for (const bool wide : {false, true}) {
    SCOPED_TRACE(wide ? "with an fp32 residual stream" : "");
    expect_gradients_fit(
        {embedding(8), dropout(0.1), simple(LayerType::kResidual), layer_norm, linear(24),
         attention(2), linear(8), dropout(0.2), simple(LayerType::kAdd),
         simple(LayerType::kResidual), layer_norm, linear(12), simple(LayerType::kGelu), linear(8),
         simple(LayerType::kAdd), layer_norm, simple(LayerType::kHead)},
        {{7, 1, 1}, 5, true, ""}, wide);
  }
}

// A linear layer and a sum that read the stream itself, and a norm behind the sum.
TEST(Network, GradientsFitWhereLayersTakeTheFp32StreamAsItIs) {
  expect_gradients_fit(
      {embedding(8), simple(LayerType::kResidual), linear(8), simple(LayerType::kAdd),
       simple(LayerType::kRmsNorm), simple(LayerType::kResidual), linear(8),
       simple(LayerType::kGelu), simple(LayerType::kShortcut), linear(8), simple(LayerType::kAdd),
       linear(5)},
      {{7, 1, 1}, 5, true, ""}, /*wide=*/true);
}

TEST(Network, GradientsFitWithRowNormsAndGelu) {
  api::LayerConfig tanh = simple(LayerType::kGelu);
  tanh.approximate = api::GeluApproximation::kTanh;
  expect_gradients_fit({conv(4), simple(LayerType::kLayerNorm), simple(LayerType::kGelu), linear(6),
                        simple(LayerType::kRmsNorm), simple(LayerType::kRelu), linear(5), tanh,
                        linear(3)});
}

// A GELU is fused between two linear layers only if no dropout or shortcut reads it, too.
TEST(Network, GradientsFitWithGelusBetweenLinearLayers) {
  const auto gelu = simple(LayerType::kGelu);
  expect_gradients_fit({linear(7), gelu, linear(6), gelu, linear(3)});
  expect_gradients_fit({linear(7), gelu, dropout(0.2), linear(6), gelu, dropout(0), linear(3)});
  expect_gradients_fit({linear(7), simple(LayerType::kResidual), gelu, linear(7), gelu,
                        simple(LayerType::kResidual), linear(7), simple(LayerType::kAdd),
                        simple(LayerType::kAdd), linear(3)});
}

// Both paths meet in the block's input: an identity, a projection, and a block within a block.
TEST(Network, GradientsFitWithResidualBlocks) {
  const auto residual = simple(LayerType::kResidual);
  const auto shortcut = simple(LayerType::kShortcut);
  const auto add = simple(LayerType::kAdd);
  const auto relu = simple(LayerType::kRelu);
  api::LayerConfig strided = conv(5);
  strided.stride = 2;
  api::LayerConfig projection = conv(5, 1);
  projection.stride = 2;
  expect_gradients_fit({conv(4),  residual,   relu,
                        conv(4),  relu,       conv(4),
                        add,      relu,  //
                        residual, strided,    simple(LayerType::kBatchNorm),
                        relu,     conv(5),  //
                        shortcut, projection, simple(LayerType::kBatchNorm),
                        add,      relu,       simple(LayerType::kGlobalPool),
                        linear(3)});
  expect_gradients_fit({conv(4), residual, conv(4), residual, relu, conv(4), add, relu, conv(4),
                        shortcut, residual, conv(4), add, add, linear(3)});
  expect_gradients_fit({conv(4), residual, residual, conv(4), add, add, linear(3)});
  expect_gradients_fit({conv(4), residual, conv(4), relu, add, relu, linear(3)});
}

// A batch norm before a sum computes it, as does a row norm behind it; a norm alone in its block
// does both, and a sum with dropout on both sides neither.
TEST(Network, GradientsFitWithNormsAroundSums) {
  const auto residual = simple(LayerType::kResidual);
  const auto add = simple(LayerType::kAdd);
  const auto relu = simple(LayerType::kRelu);
  const auto batch_norm = simple(LayerType::kBatchNorm);
  const auto layer_norm = simple(LayerType::kLayerNorm);
  expect_gradients_fit({residual, batch_norm, add, relu, conv(4), residual, conv(4), batch_norm,
                        simple(LayerType::kShortcut), conv(4, 1), add, linear(3)});
  expect_gradients_fit({conv(3), residual, conv(3), batch_norm, add, relu, residual, conv(3),
                        batch_norm, add, relu, linear(3)});
  expect_gradients_fit({linear(6), residual, layer_norm, add, layer_norm, residual, linear(6),
                        dropout(0.2), add, simple(LayerType::kRmsNorm), linear(3)});
  expect_gradients_fit({linear(6), residual, batch_norm, add, layer_norm, linear(3)});
}

TEST(Network, StartsAsTorchDoesAndDependsOnTheSeedAlone) {
  api::ModelConfig model;
  model.layers = {linear(50), simple(LayerType::kBatchNorm), linear(3)};
  const NetworkPlan plan = *plan_network(model, {10, 10, 1}, 3);
  const std::vector<float> weights = initial_values(plan, 1).weights;
  EXPECT_EQ(weights, initial_values(plan, 1).weights);
  EXPECT_NE(weights, initial_values(plan, 2).weights);

  double squares = 0;
  for (std::size_t i = 0; i < 5000; ++i) {
    EXPECT_LE(std::abs(weights[i]), 0.1F);  // 1 / sqrt(fan in)
    squares += double{weights[i]} * weights[i];
  }
  EXPECT_NEAR(squares / 5000, 0.1 * 0.1 / 3, 2e-4);
  EXPECT_EQ(weights[static_cast<std::size_t>(plan.layers[1].weights.offset) + 49], 1.0F);
  EXPECT_EQ(weights[static_cast<std::size_t>(plan.layers[1].biases.offset) + 49], 0.0F);
  const std::vector<float> statistics = initial_values(plan, 1).statistics;
  EXPECT_EQ(statistics[static_cast<std::size_t>(plan.layers[1].running_variance.offset)], 1.0F);
}

// Records the options with which layers make their operations.
class RecordingBackend : public kernels::ReferenceBackend {
 public:
  Result<std::unique_ptr<kernels::LinearOp>> make_linear(
      const kernels::LinearShape& shape, const kernels::PlanOptions& plan) override {
    linear.push_back(plan);
    return ReferenceBackend::make_linear(shape, plan);
  }
  Result<std::unique_ptr<kernels::AttentionOp>> make_attention(
      const kernels::AttentionShape& shape, const kernels::PlanOptions& plan) override {
    attention.push_back(plan);
    return ReferenceBackend::make_attention(shape, plan);
  }
  std::vector<kernels::PlanOptions> linear, attention;
};

TEST(NetworkOptions, OnlyTheFirstLayerIsPlannedWithoutAnInputGradient) {
  RecordingBackend backend;
  api::ModelConfig model;
  model.layers = {linear(5), simple(LayerType::kRelu), linear(4), linear(3)};
  ASSERT_TRUE(Network::create(*plan_network(model, {4, 1, 1}, 3), backend, {2}, 1).ok());
  ASSERT_EQ(backend.linear.size(), 3U);
  EXPECT_FALSE(backend.linear[0].input_gradient);
  EXPECT_TRUE(backend.linear[1].input_gradient);
  EXPECT_TRUE(backend.linear[2].input_gradient);
}

TEST(NetworkOptions, AttentionIsDeterministicWhereTheTrainingAsksForIt) {
  api::TrainingConfig training;
  api::ModelConfig model;
  model.gpt = api::GptConfig{.layers = 1, .heads = 2, .width = 8};
  const auto plan = plan_network(model, {{6, 1, 1}, 10, /*tokens=*/true, ""});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  for (const std::optional<bool> asked : {std::optional<bool>(), {false}, {true}}) {
    RecordingBackend backend;
    training.deterministic = asked;
    const auto made = Network::create(*plan, backend, plan_options(backend, training, 2), 1);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(backend.attention.size(), 1U);
    EXPECT_EQ(backend.attention[0].deterministic, asked.value_or(false));
  }
}

}  // namespace
}  // namespace fettle::trainer
