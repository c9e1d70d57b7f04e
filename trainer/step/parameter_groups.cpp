#include "trainer/step/parameter_groups.h"

#include <algorithm>
#include <cmath>

namespace fettle::trainer {
namespace {

// A group for each tensor.
std::vector<ParameterGroup> groups_by_tensor(const NetworkPlan& plan, double layer_decay) {
  std::int64_t last_stage = 0;
  for (const LayerPlan& layer : plan.layers) last_stage = std::max(last_stage, layer.stage);
  std::vector<ParameterGroup> groups;
  for (const LayerPlan& layer : plan.layers) {
    if (layer.frozen) continue;
    const double scale = std::pow(layer_decay, static_cast<double>(last_stage - layer.stage));
    for (const Block& block : {layer.weights, layer.biases, layer.positions}) {
      if (block.count == 0) continue;
      const Range range{block.offset, block.offset + block.count};
      groups.push_back({range, /*decays=*/range.begin < plan.decayed, scale});
    }
  }
  std::ranges::sort(groups, {}, [](const ParameterGroup& one) { return one.parameters.begin; });
  return groups;
}

// The first trained parameter without weight decay. Frozen layers come first.
std::int64_t first_undecayed(const NetworkPlan& plan) {
  std::int64_t first = plan.parameters;
  for (const LayerPlan& layer : plan.layers) {
    if (layer.frozen) continue;
    for (const Block& block : {layer.weights, layer.biases}) {
      if (block.count > 0 && block.offset >= plan.decayed) first = std::min(first, block.offset);
    }
  }
  return first;
}

}  // namespace

std::vector<ParameterGroup> parameter_groups(const NetworkPlan& plan,
                                             const api::TrainingConfig& config) {
  const double decay = config.layer_decay.value_or(1);
  if (config.optimizer == api::OptimizerKind::kLamb || decay < 1) {
    return groups_by_tensor(plan, decay);
  }
  return {{{plan.first_trained(), plan.decayed}, /*decays=*/true},
          {{first_undecayed(plan), plan.parameters}, /*decays=*/false}};
}

}  // namespace fettle::trainer
