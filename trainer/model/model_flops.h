// Model FLOPs: the conventional count of a training step's operations, for comparing the
// utilisation of devices (MFU; Chowdhery et al., PaLM, appendix B): two for a multiplication with
// its sum, the backward pass twice the forward pass, attention over all keys whether or not they
// are masked, and recomputation not counted. The operations that a step really needs are
// NetworkPlan::training_flops(), which is less.
#pragma once

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// For one sample; a sample of text has all its tokens. Excludes norms, activations and the update.
double model_flops(const NetworkPlan& plan);
// The forward pass alone.
double inference_flops(const NetworkPlan& plan);

}  // namespace fettle::trainer
