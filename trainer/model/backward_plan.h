// BackwardPlan: in which order a network's gradients are worked out, and in which buffers they lie.
//
// A buffer ("slot") holds the gradient by one layer's output, from the first layer that contributes
// to it until the layer itself has used it up. Where two contribute (the input of a residual
// block), the second is added: by its layer, if that can, else from a slot of its own. The gradient
// by a sum is that by both summands, which share its slot, unless one of them would write into it
// before the other has read it. A batch norm that ends a block steps back together with the add
// behind it, and adds the last part of the add's gradient itself: that stays in a slot of its own
// until then. Not at a cut, where the layers before run forward again first (activation_plan.h) and
// would have to leave room for two gradients instead of one. A chain needs two slots, each open
// block one or two more. Layers that nothing trained lies before get no gradient, nor do GELUs that
// are fused: it goes past them.
// A pure value and function; usable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

inline constexpr std::int64_t kNoSlot = -1;

struct BackwardStep {
  std::int64_t layer = 0;
  std::int64_t dy = 0;  // the slot with the gradient by its output
  // Where the gradient by its input goes (gradient_target); add: that by its shortcut. None: it is
  // not needed, or it is dy itself.
  std::int64_t dx = kNoSlot;
  std::int64_t sum = kNoSlot;  // where dx is then added to
  bool adds = false;           // to what is in dx
  // A batch norm that steps back with the add behind it: dy is the gradient by the add's output,
  // perhaps without a last part, which is in `other`. dy is left with the gradient by the add's
  // other summand. dx may be `other`.
  bool ends_block = false;
  std::int64_t other = kNoSlot;
  bool operator==(const BackwardStep&) const = default;
};

struct BackwardPlan {
  std::vector<BackwardStep> steps;  // from the last layer to the first that is trained
  std::int64_t slots = 0;           // the gradient by the logits starts in slot 0
};

// By layer: whether the gradient by its input is needed, because something before it is trained.
std::vector<bool> needed_input_gradients(const NetworkPlan& network);

// `cuts`: layers, ascending, before whose gradient those before them run forward again.
BackwardPlan plan_backward(const NetworkPlan& network, std::span<const std::int64_t> cuts = {});

}  // namespace fettle::trainer
