// BackwardPlan: the order in which a network's gradients are computed, and their buffers.
//
// A buffer ("slot") holds the gradient by one layer's output, from the first layer that contributes
// to it until the layer itself has used it up. If two layers contribute (the input of a residual
// block), the second part is added: by its layer if that is able to, else from a separate slot. The
// gradient by a sum is that by both summands, which share its slot, unless one of them would write
// into it before the other has read it. A batch norm that ends a block steps back together with the
// add behind it, and adds the last part of the add's gradient itself; until then that part stays in
// a separate slot. This is not done at a cut: the layers before it run forward again first
// (activation_plan.h), with room for one gradient, not two. A chain needs two slots, each open
// block one or two more. Layers with nothing trained before them get no gradient; for a fused GELU
// the gradient bypasses it.
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
  std::int64_t dy = 0;  // the slot of the gradient by its output
  // The slot of the gradient by its input (gradient_target); add: by its shortcut. kNoSlot: not
  // needed, or the same as dy.
  std::int64_t dx = kNoSlot;
  std::int64_t sum = kNoSlot;  // dx is then added to this slot
  bool adds = false;           // adds to the contents of dx
  // A batch norm that steps back with the add behind it: dy is the gradient by the add's output,
  // perhaps without its last part, which is in `other`. Afterwards dy holds the gradient by the
  // add's other summand. dx may be `other`.
  bool ends_block = false;
  std::int64_t other = kNoSlot;
  bool operator==(const BackwardStep&) const = default;
};

struct BackwardPlan {
  std::vector<BackwardStep> steps;  // from the last layer to the first that is trained
  std::int64_t slots = 0;           // the gradient by the logits starts in slot 0
};

// By layer: whether the gradient by its input is needed, because a layer before it is trained.
std::vector<bool> needed_input_gradients(const NetworkPlan& network);

// `cuts`: layers, ascending; layers before a cut run forward again before the cut's gradient.
BackwardPlan plan_backward(const NetworkPlan& network, std::span<const std::int64_t> cuts = {});

}  // namespace fettle::trainer
