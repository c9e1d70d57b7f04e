// ParameterGroups: the parameters that an optimiser updates alike, as torch.optim's groups.
//
// Groups are ranges of trained parameters, in order and without overlap. Weight decay applies to
// the weights of linear layers, convolutions and embeddings, never to biases and normalisation.
// training.layerDecay gives each stage of the network (LayerPlan::stage) a rate of its own; LAMB
// treats each tensor by itself. A pure function; usable from any thread.
#pragma once

#include <vector>

#include "api/trainer/trainer_config.h"
#include "trainer/data/batching.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

struct ParameterGroup {
  Range parameters;
  bool decays = false;
  double rate_scale = 1;  // factor of the learning rate
  bool operator==(const ParameterGroup&) const = default;
};

std::vector<ParameterGroup> parameter_groups(const NetworkPlan& plan,
                                             const api::TrainingConfig& config);

}  // namespace fettle::trainer
