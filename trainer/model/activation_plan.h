// ActivationPlan: where in memory what a network's layers give lies, and its gradients; and which
// of it is computed a second time instead of being kept (activation recomputation, Chen et al.
// 2016, "Training Deep Nets with Sublinear Memory Cost").
//
// A training pass is a list of steps; where two layers run together (layer_kinds.h) they are one,
// of the layer that has the parameters. A buffer is taken from the step that writes it to the last
// one that reads it; buffers that are never taken at the same time may share memory. All of them
// lie in one block, so its size is known before anything is allocated.
// With recomputation the layers are cut into segments at places where all that comes later depends
// on one output alone (the end of a residual block, any layer of a chain). That output is kept,
// what lies between is not; before a segment's gradients are worked out, it runs forward again, up
// to the last output that they need. The last segment has only just run and does not run again.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Not places: what a step does not need, and the network's input.
inline constexpr std::int64_t kNowhere = -1;
inline constexpr std::int64_t kAtInput = -2;

// A layer runs forward (from x to y) or backward (from x, y and dy to dx), with what layer.h says
// of ForwardBuffers and BackwardBuffers. Places are numbers of elements of one sample from the
// start of the block, to be multiplied by the most samples at once; they stay on 64-byte boundaries
// for every number of samples and every type.
struct ActivationStep {
  bool forward = true;
  std::int64_t layer = 0;
  std::int64_t x = kNowhere;
  std::int64_t y = kNowhere;
  std::int64_t shortcut = kNowhere;
  std::int64_t sum = kNowhere;  // forward: of x and shortcut; backward: where dx is then added to
  std::int64_t gelu = kNowhere;
  std::int64_t before = kNowhere;
  std::int64_t dy = kNowhere;
  std::int64_t other = kNowhere;
  std::int64_t dx = kNowhere;
  bool adds = false;  // as in BackwardStep
};

struct ActivationPlan {
  std::vector<ActivationStep> forward;   // every layer's output is written once
  std::int64_t logits_gradient = 0;      // where the loss puts it, after forward
  std::vector<ActivationStep> backward;  // with the layers that run forward again
  std::int64_t repeated = 0;             // how many layers these are
  // Of the block, a sample: its bytes are elements x samples x bytes of an element.
  std::int64_t elements = 0;

  const ActivationStep& last() const { return forward.back(); }
};

// With `recompute` the segments are those that need the least memory.
ActivationPlan plan_activations(const NetworkPlan& network, bool recompute);

}  // namespace fettle::trainer
