#include "trainer/optimizer.h"

#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "kernels/optimizer/step.h"

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

namespace {

kernels::UpdateRule rule_of(api::OptimizerKind kind) {
  switch (kind) {
    case api::OptimizerKind::kSgd:
      return kernels::UpdateRule::kSgd;
    case api::OptimizerKind::kAdam:
      return kernels::UpdateRule::kAdam;
    case api::OptimizerKind::kAdamW:
      return kernels::UpdateRule::kAdamW;
    case api::OptimizerKind::kRmsprop:
      return kernels::UpdateRule::kRmsProp;
    case api::OptimizerKind::kLamb:
      return kernels::UpdateRule::kLamb;
  }
  CHECK(false, "every optimiser has a rule");
}

kernels::UpdateSettings update_settings(const api::TrainingConfig& config) {
  kernels::UpdateSettings settings;
  settings.momentum = static_cast<float>(config.momentum);
  settings.nesterov = config.nesterov;
  settings.beta1 = static_cast<float>(config.beta1);
  settings.beta2 = static_cast<float>(config.beta2);
  settings.epsilon = static_cast<float>(config.epsilon);
  settings.smoothing = static_cast<float>(config.smoothing);
  return settings;
}

// Gradients by logits are at most 1; the sum of a batch's losses, scaled by 65536, would overflow
// where the mean does not. A power of two divides without rounding.
kernels::StepSettings step_settings(const api::TrainingConfig& config, std::int64_t predictions) {
  kernels::StepSettings settings;
  settings.scales_loss = config.precision == api::Precision::kFp16;
  settings.batch_divisor =
      static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(predictions)));
  settings.clip_norm = config.clip_norm.value_or(0);
  return settings;
}

}  // namespace

Optimizer::Optimizer(const api::TrainingConfig& config, std::int64_t predictions,
                     kernels::Backend& backend, Parameters& parameters)
    : config_(config),
      settings_(step_settings(config, predictions)),
      backend_(backend),
      parameters_(parameters) {}

Result<std::unique_ptr<Optimizer>> Optimizer::create(const api::TrainingConfig& config,
                                                     const NetworkPlan& plan,
                                                     std::int64_t predictions,
                                                     kernels::Backend& backend,
                                                     Parameters& parameters) {
  std::unique_ptr<Optimizer> made(new Optimizer(config, predictions, backend, parameters));
  using Floats = kernels::DeviceArray<float>;
  const OptimizerStates states = states_of(config);
  FETTLE_ASSIGN(made->state1, Floats::create(backend, states.first ? plan.parameters : 0));
  FETTLE_ASSIGN(made->state2, Floats::create(backend, states.second ? plan.parameters : 0));
  FETTLE_ASSIGN(made->device_control_,
                kernels::DeviceArray<kernels::StepControl>::create(backend, 1));
  made->results_ = backend.mailbox(sizeof(kernels::StepControl));
  made->restore(0, {});
  made->plan_update(plan);
  return made;
}

// LAMB looks at each tensor by itself; to the others only decay makes a difference.
void Optimizer::plan_update(const NetworkPlan& plan) {
  std::vector<kernels::UpdateBuffers> parts;
  if (config_.optimizer == api::OptimizerKind::kLamb) {
    for (const LayerPlan& layer : plan.layers) {
      for (const Block& block : {layer.weights, layer.biases, layer.positions}) {
        if (block.count == 0) continue;
        parts.push_back(
            part(block.offset, block.offset + block.count, block.offset < plan.decayed));
      }
    }
  } else {
    if (plan.decayed > 0) parts.push_back(part(0, plan.decayed, true));
    if (plan.decayed < plan.parameters) {
      parts.push_back(part(plan.decayed, plan.parameters, false));
    }
  }
  update_ = backend_.update(rule_of(config_.optimizer), std::move(parts), update_settings(config_));
}

kernels::UpdateBuffers Optimizer::part(std::int64_t begin, std::int64_t end, bool decays) {
  kernels::UpdateBuffers buffers;
  buffers.count = end - begin;
  buffers.weights = parameters_.weights.data() + begin;
  buffers.gradient = parameters_.gradients.data() + begin;
  if (!state1.empty()) buffers.state1 = state1.data() + begin;
  if (!state2.empty()) buffers.state2 = state2.data() + begin;
  // Operations take only weights in 16 bits, never biases or normalisation.
  if (decays && !parameters_.rounded.empty()) buffers.rounded = parameters_.rounded.data() + begin;
  buffers.rounded_type = parameters_.rounded_type;
  buffers.weight_decay = decays ? static_cast<float>(config_.weight_decay) : 0;
  return buffers;
}

void Optimizer::set_input(const kernels::StepInput& input) {
  backend_.upload(&input, &device_control_.data()->input, sizeof(input));
}

void Optimizer::order_update() {
  kernels::StepControl* control = device_control_.data();
  backend_.sum_of_squares(parameters_.weights.size(), parameters_.gradients.data(),
                          &control->squares);
  backend_.decide_step(settings_, parameters_.step_sums(), control);
  update_->run(control);
}

const kernels::StepControl& Optimizer::take_result() {
  results_->take(&control_);
  return control_;
}

void Optimizer::restore(std::int64_t updates, const kernels::LossScale& scale) {
  control_ = kernels::first_control(settings_, updates, scale);
  device_control_.upload(std::span(&control_, 1));
}

}  // namespace fettle::trainer
