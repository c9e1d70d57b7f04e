#include "trainer/model/backward_plan.h"

#include <algorithm>
#include <utility>

#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

// Which layers' outputs something trained lies before, so that their gradients are needed.
std::vector<bool> needed_gradients(const NetworkPlan& network) {
  std::vector<bool> needed;
  const auto of = [&needed](std::int64_t layer) {
    return layer != kNetworkInput && needed[static_cast<std::size_t>(layer)];
  };
  for (const LayerPlan& layer : network.layers) {
    const bool shortcut = layer.type == api::LayerType::kAdd && of(layer.shortcut);
    needed.push_back(layer.has_parameters() || of(layer.source) || shortcut);
  }
  return needed;
}

class BackwardPlanner {
 public:
  BackwardPlanner(const NetworkPlan& network, std::span<const std::int64_t> cuts)
      : network_(network),
        cuts_(cuts),
        needed_(needed_gradients(network)),
        slot_of_(network.layers.size(), kNoSlot) {}

  BackwardPlan run() {
    slot_of_.back() = take_slot();
    for (std::int64_t i = std::ssize(network_.layers); i-- > 0;) {
      // No slot: the layer stepped back with the one behind it (a batch norm with its add, a fused
      // GELU with the linear layer).
      if (!needs(i) || slot(i) == kNoSlot) continue;
      if (steps_back_with_norm(i)) {
        step_back_end(i);
      } else if (network_.layer(i).type == api::LayerType::kAdd) {
        step_back_add(i);
      } else {
        step_back(i);
      }
    }
    return std::move(plan_);
  }

 private:
  bool needs(std::int64_t layer) const {
    return layer != kNetworkInput && needed_[static_cast<std::size_t>(layer)];
  }

  std::int64_t slot(std::int64_t layer) const { return slot_of_[static_cast<std::size_t>(layer)]; }
  std::int64_t& slot(std::int64_t layer) { return slot_of_[static_cast<std::size_t>(layer)]; }

  void step_back(std::int64_t i) {
    BackwardStep step{i, slot(i)};
    pass_on(step);
    release(step.dy);
    plan_.steps.push_back(step);
  }

  // Where the gradient by the input of the step's layer goes.
  void pass_on(BackwardStep& step) {
    const LayerPlan& layer = network_.layer(step.layer);
    const std::int64_t target = network_.gradient_target(layer);
    if (!needs(target)) return;
    if (slot(target) == kNoSlot) {  // the first part of this gradient
      slot(target) = step.dx = take_slot();
    } else if (kind_of(layer.type).adds_gradients && slot(target) != step.dy) {
      // Not into dy, which the layer still reads while it adds.
      step.dx = slot(target);
      step.adds = true;
    } else if (completes_an_end(step.layer, target)) {
      other_ = step.dx = take_slot();  // step_back_end() takes it up
    } else {
      step.sum = slot(target);
      step.dx = take_slot();  // for this step alone
      release(step.dx);
    }
  }

  // Whether the last part of the gradient of `target` comes from `layer`, and the batch norm that
  // steps back with `target` can add it. Of all layers that take an output, the one that directly
  // follows steps back last, and then it is the turn of `target`.
  bool completes_an_end(std::int64_t layer, std::int64_t target) const {
    return layer == target + 1 && steps_back_with_norm(target) &&
           !std::ranges::binary_search(cuts_, target);
  }

  // Whether layer i is an add that steps back with the batch norm before it. Not where the gradient
  // by its other summand is added to one that is there: a shortcut within another block.
  bool steps_back_with_norm(std::int64_t i) const {
    const bool ends =
        network_.layer(i).type == api::LayerType::kAdd && i > 0 && network_.layer(i - 1).ends_block;
    if (!ends) return false;
    const std::int64_t other = other_summand(i);
    return !needs(other) || slot(other) == kNoSlot;
  }

  // Of an add behind the batch norm that is one of its summands.
  std::int64_t other_summand(std::int64_t add) const {
    const LayerPlan& layer = network_.layer(add);
    return layer.source == add - 1 ? layer.shortcut : layer.source;
  }

  // The other summand takes over the slot: all that the batch norm writes there is its gradient.
  void step_back_end(std::int64_t add) {
    BackwardStep step{.layer = add - 1,
                      .dy = slot(add),
                      .ends_block = true,
                      .other = std::exchange(other_, kNoSlot)};
    const std::int64_t other = other_summand(add);
    // It has none yet, or this add would not step back with its norm (steps_back_with_norm).
    if (needs(other)) slot(other) = step.dy;
    // So that dx takes its place: BatchNormOp::backward_end() may write it over `other`.
    if (step.other != kNoSlot) release(step.other);
    pass_on(step);
    if (!needs(other)) release(step.dy);
    plan_.steps.push_back(step);
  }

  // What the block's layers give goes to add alone, so it takes over the slot. The shortcut may be
  // the input of a block around this one, which has a sum already.
  void step_back_add(std::int64_t i) {
    const LayerPlan& layer = network_.layer(i);
    BackwardStep step{i, slot(i)};
    if (needs(layer.shortcut)) {
      if (slot(layer.shortcut) != kNoSlot) {
        step.dx = slot(layer.shortcut);
        step.adds = true;
      } else if (summands_share(layer)) {  // dx stays kNoSlot: there is nothing to copy
        slot(layer.shortcut) = step.dy;
        ++users_[static_cast<std::size_t>(step.dy)];
      } else {
        slot(layer.shortcut) = step.dx = take_slot();
      }
    }
    if (needs(layer.source)) {
      slot(layer.source) = step.dy;
    } else {
      release(step.dy);  // which the shortcut may still use
    }
    plan_.steps.push_back(step);
  }

  // The later of the two layers steps back first, and must leave the slot as it is. The earlier one
  // may do as it likes: a shortcut that is the block's input steps back, and gets its sum, only
  // when all layers of the block have.
  bool summands_share(const LayerPlan& add) const {
    const std::int64_t later = std::max(add.source, add.shortcut);
    if (!needs(later)) return true;
    const LayerPlan& layer = network_.layer(later);
    return layer.type != api::LayerType::kAdd && !layer.relu;
  }

  std::int64_t take_slot() {
    if (free_.empty()) {
      users_.push_back(1);
      return plan_.slots++;
    }
    const std::int64_t slot = free_.back();
    free_.pop_back();
    users_[static_cast<std::size_t>(slot)] = 1;
    return slot;
  }
  void release(std::int64_t slot) {
    if (--users_[static_cast<std::size_t>(slot)] == 0) free_.push_back(slot);
  }

  const NetworkPlan& network_;
  const std::span<const std::int64_t> cuts_;
  const std::vector<bool> needed_;
  std::vector<std::int64_t> slot_of_;  // by layer
  std::vector<std::int64_t> users_;    // by slot: layers whose gradient it still is
  std::vector<std::int64_t> free_;
  std::int64_t other_ = kNoSlot;  // of the next step, which is that of a block's end
  BackwardPlan plan_;
};

}  // namespace

std::vector<bool> needed_input_gradients(const NetworkPlan& network) {
  const std::vector<bool> outputs = needed_gradients(network);
  std::vector<bool> needed;
  for (const LayerPlan& layer : network.layers) {
    const std::int64_t target = network.gradient_target(layer);
    needed.push_back(target != kNetworkInput && outputs[static_cast<std::size_t>(target)]);
  }
  return needed;
}

BackwardPlan plan_backward(const NetworkPlan& network, std::span<const std::int64_t> cuts) {
  return BackwardPlanner(network, cuts).run();
}

}  // namespace fettle::trainer
