#include "trainer/model/backward_plan.h"

#include <algorithm>
#include <utility>

#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

// By layer: whether the gradient by its output is needed, because it or a layer before it is
// trained.
std::vector<bool> needed_gradients(const NetworkPlan& network) {
  std::vector<bool> needed;
  const auto of = [&needed](std::int64_t layer) {
    return layer != kNetworkInput && needed[static_cast<std::size_t>(layer)];
  };
  for (const LayerPlan& layer : network.layers) {
    const bool shortcut = layer.type == api::LayerType::kAdd && of(layer.shortcut);
    needed.push_back(layer.is_trained() || of(layer.source) || shortcut);
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
      // No slot: the layer already stepped back with its successor (a batch norm with its add, a
      // fused GELU with the linear layer).
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

  // Chooses the place of the gradient by the input of the step's layer.
  void pass_on(BackwardStep& step) {
    const LayerPlan& layer = network_.layer(step.layer);
    const std::int64_t target = network_.gradient_target(layer);
    if (!needs(target)) return;
    if (slot(target) == kNoSlot) {  // the first part of this gradient
      slot(target) = step.dx = take_slot();
    } else if (kind_of(layer.type).adds_gradients && slot(target) != step.dy) {
      // Not into dy, because the layer still reads it while it adds.
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

  // Whether `layer` contributes the last part of the gradient of `target`, and the batch norm that
  // steps back with `target` can add it. Among the layers that read an output, the directly
  // following one steps back last, and then `target` is next.
  bool completes_an_end(std::int64_t layer, std::int64_t target) const {
    return layer == target + 1 && steps_back_with_norm(target) &&
           !std::ranges::binary_search(cuts_, target);
  }

  // Whether layer i is an add that steps back with the batch norm before it. It does not if the
  // gradient by its other summand must be added to an existing one: a shortcut within another
  // block.
  bool steps_back_with_norm(std::int64_t i) const {
    const bool ends =
        network_.layer(i).type == api::LayerType::kAdd && i > 0 && network_.layer(i - 1).ends_block;
    if (!ends) return false;
    const std::int64_t other = other_summand(i);
    return !needs(other) || slot(other) == kNoSlot;
  }

  // The other summand of an add that has the batch norm before it as one summand.
  std::int64_t other_summand(std::int64_t add) const {
    const LayerPlan& layer = network_.layer(add);
    return layer.source == add - 1 ? layer.shortcut : layer.source;
  }

  // The other summand takes over the slot, in which the batch norm leaves only its gradient.
  void step_back_end(std::int64_t add) {
    BackwardStep step{.layer = add - 1,
                      .dy = slot(add),
                      .ends_block = true,
                      .other = std::exchange(other_, kNoSlot)};
    const std::int64_t other = other_summand(add);
    // The summand has no slot yet; otherwise steps_back_with_norm() would be false.
    if (needs(other)) slot(other) = step.dy;
    // Released so that dx takes its place: BatchNormOp::backward_end() may write it over `other`.
    if (step.other != kNoSlot) release(step.other);
    pass_on(step);
    if (!needs(other)) release(step.dy);
    plan_.steps.push_back(step);
  }

  // The output of the block's layers goes to the add alone, so it takes over the slot. The shortcut
  // may be the input of an enclosing block, which has a sum already.
  void step_back_add(std::int64_t i) {
    const LayerPlan& layer = network_.layer(i);
    BackwardStep step{i, slot(i)};
    if (needs(layer.shortcut)) {
      if (slot(layer.shortcut) != kNoSlot) {
        step.dx = slot(layer.shortcut);
        step.adds = true;
      } else if (summands_share(layer)) {  // dx stays kNoSlot: no copy is needed
        slot(layer.shortcut) = step.dy;
        ++users_[static_cast<std::size_t>(step.dy)];
      } else {
        slot(layer.shortcut) = step.dx = take_slot();
      }
    }
    if (needs(layer.source)) {
      slot(layer.source) = step.dy;
    } else {
      release(step.dy);  // the shortcut may still use it
    }
    plan_.steps.push_back(step);
  }

  // The later of the two layers steps back first, and must leave the slot unchanged. The earlier
  // layer may change it: a shortcut that is the block's input steps back, with its whole sum, only
  // after all layers of the block.
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
  std::vector<std::int64_t> users_;    // by slot: number of layers whose gradient it still holds
  std::vector<std::int64_t> free_;
  std::int64_t other_ = kNoSlot;  // of the next step, which ends a block
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
