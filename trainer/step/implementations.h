// Reports the implementations of the passes of a network's layers: a library's or, if the library
// has no plan for a shape, a kernel of our own, which may be far slower. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "trainer/model/network.h"

namespace fettle::trainer {

// [{"pass": "forward", "by": "cuDNN", "fused": "bias, ReLU", "layers": ["conv1", "conv2"]}, ...]:
// layers are grouped by implementation, in the order of the first layers. A pass that fell back
// also has a "reason".
Json to_json(const std::vector<LayerImplementation>& implementations);

// Number of passes of layers that fell back to a kernel of our own.
std::int64_t fallbacks(const std::vector<LayerImplementation>& implementations);

}  // namespace fettle::trainer
