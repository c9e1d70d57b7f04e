// Residual streams in fp32: what torch.autocast makes of a GPT in 16 bits. Its embedding, the sums
// at the end of residual blocks, dropout of these and the norms that read them are fp32; linear
// layers and attention are 16-bit. A cast stands wherever one kind takes what the other gives, on
// the way back, too.
// A pure function; usable from any thread.
#pragma once

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// The same layers with the same parameters. Streams begin at an embedding; a plan without one comes
// back as it is.
NetworkPlan with_fp32_residuals(const NetworkPlan& plan);

}  // namespace fettle::trainer
