// Model FLOPs: what a training step's operations are counted as where the use of devices is
// compared (MFU; Chowdhery et al., PaLM, appendix B). A convention, so that numbers of others mean
// the same: two for a multiplication with its sum, the backward pass twice the forward one,
// attention with all keys whether or not they are masked, and nothing twice because it is computed
// twice. What a step cannot do without is NetworkPlan::training_flops(), which is less.
#pragma once

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Of one sample, of a text with all its tokens. Norms, activations and the update are not counted.
double model_flops(const NetworkPlan& plan);

}  // namespace fettle::trainer
