// Quantised inputs: a network plan with a `quantize` layer before each layer that computes in 8
// bits: linear and conv, and of images the residual sums. Layers that read the same output share
// one. Its range lies behind the other statistics. Norms, embeddings, attention and the head stay
// as they are.
// A pure function; usable from any thread.
#pragma once

#include <cstdint>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Whether layers of this kind multiply 8-bit inputs with 8-bit weights.
bool computes_in_bytes(api::LayerType type);

// `weight_bits`: the training rounds these layers' weights to such a grid; 0: their weights are
// rounded already.
NetworkPlan with_quantized_inputs(const NetworkPlan& plan, std::int64_t weight_bits = 0);

}  // namespace fettle::trainer
