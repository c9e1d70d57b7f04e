// Residual streams in fp32, as torch.autocast keeps them for a GPT in 16 bits. Embedding, sums at
// the end of residual blocks, dropout of these and the norms that read them are fp32; linear layers
// and attention are 16-bit. A cast stands wherever a layer of one type reads the output of the
// other; gradients are cast back.
// A pure function; usable from any thread.
#pragma once

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// The same layers with the same parameters. Streams begin at an embedding; a plan without an
// embedding is returned unchanged.
NetworkPlan with_fp32_residuals(const NetworkPlan& plan);

}  // namespace fettle::trainer
