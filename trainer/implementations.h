// What a report says of the implementations that do the passes of a network's layers: a library's,
// or, where that has no plan for a shape, a kernel of our own, which may be far slower. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "trainer/model/network.h"

namespace fettle::trainer {

// [{"pass": "forward", "by": "cuDNN", "fused": "bias, ReLU", "layers": ["conv1", "conv2"]}, ...]:
// the layers of one implementation together, in the order of their first ones. A pass that fell
// back also has the "reason".
Json to_json(const std::vector<LayerImplementation>& implementations);

// Passes of layers that fell back to a kernel of our own.
std::int64_t fallbacks(const std::vector<LayerImplementation>& implementations);

}  // namespace fettle::trainer
