#include "trainer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace fettle::trainer {

OptimizerStates states_of(const api::TrainingConfig& config) {
  switch (config.optimizer) {
    case api::OptimizerKind::kSgd:
      return {config.momentum > 0, false};
    case api::OptimizerKind::kRmsprop:
      return {true, config.momentum > 0};
    default:
      return {true, true};
  }
}

Optimizer::Optimizer(const api::TrainingConfig& config, const NetworkPlan& plan,
                     kernels::Backend& backend)
    : config_(config), decayed_(plan.decayed), backend_(backend) {
  for (const LayerPlan& layer : plan.layers) {
    for (const Block& block : {layer.weights, layer.biases, layer.positions}) {
      if (block.count > 0) tensors_.push_back(block);
    }
  }
  const OptimizerStates states = states_of(config);
  if (states.first) state1 = kernels::AlignedArray<float>(plan.parameters);
  if (states.second) state2 = kernels::AlignedArray<float>(plan.parameters);
}

bool Optimizer::update(Parameters& parameters, double divisor, double learning_rate) {
  const std::span<float> gradients = parameters.weight_gradients();
  double scale = 1 / divisor;
  const double norm = std::sqrt(backend_.sum_of_squares(gradients)) * scale;
  if (!std::isfinite(norm)) return false;
  if (config_.clip_norm) {
    constexpr double kTiny = 1e-6;  // as in PyTorch
    scale *= std::min(1.0, *config_.clip_norm / (norm + kTiny));
  }
  kernels::UpdateSettings settings;
  settings.gradient_scale = static_cast<float>(scale);
  settings.learning_rate = static_cast<float>(learning_rate);
  settings.momentum = static_cast<float>(config_.momentum);
  settings.nesterov = config_.nesterov;
  settings.beta1 = static_cast<float>(config_.beta1);
  settings.beta2 = static_cast<float>(config_.beta2);
  settings.epsilon = static_cast<float>(config_.epsilon);
  settings.smoothing = static_cast<float>(config_.smoothing);
  settings.weight_decay = static_cast<float>(config_.weight_decay);
  settings.step = ++updates;
  update_all(parameters, settings);
  std::fill(gradients.begin(), gradients.end(), 0.0F);
  return true;
}

void Optimizer::update_all(Parameters& parameters, const kernels::UpdateSettings& settings) {
  kernels::UpdateSettings spared = settings;
  spared.weight_decay = 0;
  if (config_.optimizer == api::OptimizerKind::kLamb) {
    for (const Block& tensor : tensors_) {
      const bool decays = tensor.offset < decayed_;
      update_part(parameters, tensor.offset, tensor.offset + tensor.count,
                  decays ? settings : spared, decays);
    }
    return;
  }
  update_part(parameters, 0, decayed_, settings, true);
  update_part(parameters, decayed_, parameters.weights.size(), spared, false);
}

void Optimizer::update_part(Parameters& parameters, std::int64_t begin, std::int64_t end,
                            const kernels::UpdateSettings& settings, bool rounds) {
  if (begin == end) return;
  kernels::UpdateBuffers buffers;
  buffers.count = end - begin;
  buffers.weights = parameters.weights.data() + begin;
  buffers.gradient = parameters.gradients.data() + begin;
  if (!state1.empty()) buffers.state1 = state1.data() + begin;
  if (!state2.empty()) buffers.state2 = state2.data() + begin;
  // Operations take only weights in 16 bits, never biases or normalisation.
  if (rounds && !parameters.rounded.empty()) buffers.rounded = parameters.rounded.data() + begin;
  buffers.rounded_type = parameters.rounded_type;
  switch (config_.optimizer) {
    case api::OptimizerKind::kSgd:
      return backend_.sgd(buffers, settings);
    case api::OptimizerKind::kAdam:
      return backend_.adam(buffers, settings);
    case api::OptimizerKind::kAdamW:
      return backend_.adamw(buffers, settings);
    case api::OptimizerKind::kRmsprop:
      return backend_.rmsprop(buffers, settings);
    case api::OptimizerKind::kLamb:
      return backend_.lamb(buffers, settings);
  }
}

}  // namespace fettle::trainer
