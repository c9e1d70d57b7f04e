// ActivationPlan: places of a network's outputs and gradients in memory, and the outputs that are
// computed a second time instead of being kept (activation recomputation, Chen et al. 2016,
// "Training Deep Nets with Sublinear Memory Cost").
//
// A training pass is a list of steps; two layers that run together (layer_kinds.h) are one step, of
// the layer that has the parameters. A buffer is live from the step that writes it to the last step
// that reads it; buffers that are never live at the same time may share memory. All buffers lie in
// one block, so its size is known before anything is allocated.
// With recomputation the layers are cut into segments at places where all later layers depend on
// one output alone (the end of a residual block, any layer of a chain). That output is kept,
// outputs between cuts are not; before a segment's gradients are computed, it runs forward again,
// up to the last output that they need. The last segment has only just run and does not run again.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Special places: a buffer that a step does not need, and the network's input.
inline constexpr std::int64_t kNowhere = -1;
inline constexpr std::int64_t kAtInput = -2;

// A layer runs forward (from x to y) or backward (from x, y and dy to dx); the fields are those of
// ForwardBuffers and BackwardBuffers in layer.h. Places count elements of one sample from the start
// of the block, and are multiplied by the most samples at once; they stay on 64-byte boundaries for
// every number of samples and every type.
struct ActivationStep {
  bool forward = true;
  std::int64_t layer = 0;
  std::int64_t x = kNowhere;
  std::int64_t y = kNowhere;
  std::int64_t shortcut = kNowhere;
  std::int64_t sum = kNowhere;  // forward: x + shortcut; backward: dx is then added to it
  std::int64_t gelu = kNowhere;
  std::int64_t before = kNowhere;
  std::int64_t dy = kNowhere;
  std::int64_t other = kNowhere;
  std::int64_t dx = kNowhere;
  bool adds = false;  // as in BackwardStep
};

struct ActivationPlan {
  std::vector<ActivationStep> forward;   // every layer's output is written once
  std::int64_t logits_gradient = 0;      // the loss writes it, after forward
  std::vector<ActivationStep> backward;  // including repeated forward steps
  std::int64_t repeated = 0;             // number of repeated layers
  // Elements of the block for one sample: its bytes are elements x samples x bytes of an element.
  std::int64_t elements = 0;

  const ActivationStep& last() const { return forward.back(); }
};

// With `recompute` the plan has the segments that need the least memory.
ActivationPlan plan_activations(const NetworkPlan& network, bool recompute);
// The plan of a network that only runs forward: no backward steps; an output is kept until its
// last reader has run. `logits_gradient` is the place of the logits.
ActivationPlan plan_forward(const NetworkPlan& network);

}  // namespace fettle::trainer
