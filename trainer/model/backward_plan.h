// BackwardPlan: in which order a network's gradients are worked out, and in which buffers they lie.
//
// A buffer ("slot") holds the gradient by one layer's output, from the first layer that contributes
// to it until the layer itself has used it up. Where two contribute (the input of a residual
// block), the second works in a slot of its own and is added. A chain needs two slots, each open
// block one or two more. Layers that nothing trained lies before get no gradient. A pure value and
// function; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

inline constexpr std::int64_t kNoSlot = -1;

struct BackwardStep {
  std::int64_t layer = 0;
  std::int64_t dy = 0;          // the slot with the gradient by its output
  std::int64_t dx = kNoSlot;    // where the gradient by its input goes; none: not needed
  std::int64_t sum = kNoSlot;   // where dx is then added to; add: where dy is, for its shortcut
  std::int64_t copy = kNoSlot;  // add: where dy is copied to, for its shortcut
  bool operator==(const BackwardStep&) const = default;
};

struct BackwardPlan {
  std::vector<BackwardStep> steps;  // from the last layer to the first that is trained
  std::int64_t slots = 0;           // the gradient by the logits starts in slot 0
};

BackwardPlan plan_backward(const NetworkPlan& network);

}  // namespace fettle::trainer
