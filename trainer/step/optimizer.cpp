#include "trainer/step/optimizer.h"

#include <algorithm>
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
  settings.momentum = config.momentum;
  settings.nesterov = config.nesterov;
  settings.beta1 = config.beta1;
  settings.beta2 = config.beta2;
  settings.epsilon = config.epsilon;
  settings.smoothing = config.smoothing;
  return settings;
}

// Gradients by logits are at most 1; scaled by 65536, the sum over a batch would overflow where the
// mean does not. A power of two divides without rounding.
kernels::StepSettings step_settings(const api::TrainingConfig& config, std::int64_t predictions) {
  kernels::StepSettings settings;
  settings.scales_loss = config.precision == api::Precision::kFp16;
  settings.batch_divisor =
      static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(predictions)));
  settings.clip_norm = config.clip_norm.value_or(0);
  return settings;
}

}  // namespace

Optimizer::Optimizer(const api::TrainingConfig& config, const kernels::StepSettings& settings,
                     kernels::Backend& backend, Parameters& parameters, const Range& shard)
    : config_(config),
      settings_(settings),
      backend_(backend),
      parameters_(parameters),
      shard_(shard) {}

Result<std::unique_ptr<Optimizer>> Optimizer::create(
    const api::TrainingConfig& config, const NetworkPlan& plan, std::int64_t predictions,
    kernels::Backend& backend, Parameters& parameters, const std::optional<Range>& shard,
    const std::int32_t* given_up) {
  const Range updated = shard.value_or(Range{0, plan.parameters});
  kernels::StepSettings settings = step_settings(config, predictions);
  settings.given_up = given_up;
  std::unique_ptr<Optimizer> made(new Optimizer(config, settings, backend, parameters, updated));
  using Floats = kernels::DeviceArray<float>;
  const OptimizerStates states = states_of(config);
  FETTLE_ASSIGN(made->state1, Floats::create(backend, states.first ? updated.size() : 0));
  FETTLE_ASSIGN(made->state2, Floats::create(backend, states.second ? updated.size() : 0));
  if (config.prune) {
    const std::int64_t words = plan.decayed / kernels::kMaskBits;
    FETTLE_ASSIGN(made->mask_, kernels::DeviceArray<std::uint16_t>::create(backend, words));
    made->set_mask(std::vector<std::uint16_t>(static_cast<std::size_t>(words), 0xFFFF));
  }
  FETTLE_ASSIGN(made->device_control_,
                kernels::DeviceArray<kernels::StepControl>::create(backend, 1));
  made->results_ = backend.readback(sizeof(kernels::StepControl));
  made->restore(/*updates=*/0, {});
  made->plan_update(plan);
  return made;
}

void Optimizer::plan_update(const NetworkPlan& plan) {
  std::vector<kernels::UpdateBuffers> parts;
  for (const ParameterGroup& group : parameter_groups(plan, config_)) {
    const Range mine{std::max(group.parameters.begin, shard_.begin),
                     std::min(group.parameters.end, shard_.end)};
    if (mine.size() > 0) parts.push_back(part(mine, group));
  }
  if (parts.empty()) return;  // an empty shard: update_ stays null
  update_ = backend_.update(rule_of(config_.optimizer), std::move(parts), update_settings(config_));
}

// `range`: parameters within this worker's shard; the state covers no others.
kernels::UpdateBuffers Optimizer::part(const Range& range, const ParameterGroup& group) {
  kernels::UpdateBuffers buffers;
  buffers.count = range.size();
  buffers.weights = parameters_.master(range.begin);
  buffers.gradient = parameters_.gradients.data() + range.begin;
  const std::int64_t in_shard = range.begin - shard_.begin;
  if (!state1.empty()) buffers.state1 = state1.data() + in_shard;
  if (!state2.empty()) buffers.state2 = state2.data() + in_shard;
  if (!parameters_.rounded.empty()) buffers.rounded = parameters_.rounded.data() + range.begin;
  buffers.rounded_type = parameters_.rounded_type;
  // Ranges begin on cache lines, so a word of the mask belongs to one range.
  if (group.decays && !mask_.empty())
    buffers.mask = mask_.data() + range.begin / kernels::kMaskBits;
  buffers.weight_decay = group.decays ? static_cast<float>(config_.weight_decay) : 0;
  buffers.rate_scale = group.rate_scale;
  return buffers;
}

void Optimizer::set_input(const kernels::StepInput& input) {
  backend_.upload(&input, &device_control_.data()->input, sizeof(input));
}

void Optimizer::enqueue_update() {
  kernels::StepControl* control = device_control_.data();
  backend_.sum_of_squares(parameters_.count, parameters_.gradients.data(), &control->squares);
  backend_.decide_step(settings_, parameters_.step_sums(), control);
  if (update_) update_->run(control);
}

const kernels::StepControl& Optimizer::take_result() {
  results_->take(&control_);
  return control_;
}

void Optimizer::restore(std::int64_t updates, const kernels::LossScale& scale) {
  control_ = kernels::first_control(settings_, updates, scale);
  device_control_.upload(std::span(&control_, 1));
}

bool Optimizer::fits(std::size_t first, std::size_t second) const {
  const OptimizerStates states = states_of(config_);
  const auto all = static_cast<std::size_t>(parameters_.count);
  return first == (states.first ? all : 0) && second == (states.second ? all : 0);
}

void Optimizer::restore_state(std::span<const float> first, std::span<const float> second) {
  CHECK(fits(first.size(), second.size()), "the state of another optimiser");
  const auto begin = static_cast<std::size_t>(shard_.begin);
  const auto size = static_cast<std::size_t>(shard_.size());
  if (!first.empty()) state1.upload(first.subspan(begin, size));
  if (!second.empty()) state2.upload(second.subspan(begin, size));
}

OptimizerState Optimizer::fresh_state() const {
  const OptimizerStates states = states_of(config_);
  const auto all = static_cast<std::size_t>(parameters_.count);
  return {std::vector<float>(states.first ? all : 0), std::vector<float>(states.second ? all : 0)};
}

}  // namespace fettle::trainer
