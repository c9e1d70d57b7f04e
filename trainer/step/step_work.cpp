#include "trainer/step/step_work.h"

#include "trainer/step/optimizer.h"
#include "trainer/step/precision.h"

namespace fettle::trainer {

namespace {

constexpr double kFloat = sizeof(float);

// An output is written, read by the next layer and read again on the way back; its gradient is
// written and read. If layers are fused, some of that stays in registers.
double passes_over(const NetworkPlan& plan, const LayerPlan& layer) {
  if (layer.ends_block) return 0;
  if (layer.gelu_after) return 4;  // its GELU is written along with it
  const bool fused = layer.type == api::LayerType::kGelu && layer.source != kNetworkInput &&
                     plan.layer(layer.source).gelu_after.has_value();
  return fused ? 3 : 5;
}

// A micro-batch reads all weights forward and backward, and adds to all gradients.
constexpr double kPassesOverWeights = 2;
constexpr double kPassesOverGradients = 2;

// Numbers per sample that the layers write and read.
double moved_outputs(const NetworkPlan& plan) {
  double sum = 0;
  for (const LayerPlan& layer : plan.layers) {
    const double width = layer.wide ? 2 : 1;  // in numbers of 16 bits
    sum += static_cast<double>(layer.output.size()) * width * passes_over(plan, layer);
  }
  return sum;
}

// Masters and state are read and written, gradients read and cleared, 16-bit copies written.
double update_bytes(const api::TrainingConfig& config, double parameters, double rounded) {
  const OptimizerStates states = states_of(config);
  const double arrays = (states.first ? 1 : 0) + (states.second ? 1 : 0);
  constexpr double kMasters = 2;
  constexpr double kGradients = 2;
  return parameters * (kFloat * (kMasters + 2 * arrays + kGradients) + rounded);
}

}  // namespace

StepWork plan_work(const api::TrainerConfig& config, const NetworkPlan& plan,
                   const StepShape& step) {
  const kernels::DataType type = data_type(config.training.precision);
  const auto element = static_cast<double>(kernels::size_of(type));
  const double rounded = type == kernels::DataType::kFloat32 ? 0 : element;
  const auto samples = static_cast<double>(step.samples());
  const auto parameters = static_cast<double>(plan.parameters);
  const auto pieces = static_cast<double>(step.accumulation);
  const auto world = static_cast<double>(step.dealing.world_size);
  StepWork work;
  work.flops = plan.training_flops() * samples;
  work.memory_bytes =
      samples * moved_outputs(plan) * element +
      pieces * parameters * (element * kPassesOverWeights + kFloat * kPassesOverGradients) +
      update_bytes(config.training, parameters, rounded);
  const double pixel = plan.tokens ? sizeof(std::int32_t) : element;
  work.sample_bytes = samples * static_cast<double>(plan.input.size()) * pixel;
  // Floats of a step's all-reduce: gradients, running statistics, and the sums of loss and samples.
  const double summed = parameters + static_cast<double>(plan.statistics + kStepSums);
  work.message_bytes = summed * kFloat * 2 * (world - 1) / world;
  return work;
}

}  // namespace fettle::trainer
