// Checks the groups of samples that batch normalisation takes its statistics over, before a
// training starts. They are the same for any number of workers only if the configuration fixes
// their size, and a group must hold more than one value per channel: the variance of one value is
// 0, so the layer would give a constant, and its running variance would go to 0. PyTorch refuses
// that in the step that meets it; here the sizes of all steps are known. Usable from any thread.
#pragma once

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/model/network_plan.h"
#include "trainer/step/memory_plan.h"

namespace fettle::trainer {

// Errors: a network with batchNorm over groups that depend on the number of workers, or over one
// value per channel.
Status check_norm_samples(const api::TrainerConfig& config, const NetworkPlan& plan,
                          const TrainingWorld& world);

}  // namespace fettle::trainer
