#include "trainer/model/backward_plan.h"

#include <algorithm>

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
  explicit BackwardPlanner(const NetworkPlan& network)
      : network_(network),
        needed_(needed_gradients(network)),
        slot_of_(network.layers.size(), kNoSlot) {}

  BackwardPlan run() {
    slot_of_.back() = take_slot();
    for (std::size_t i = network_.layers.size(); i-- > 0;) {
      if (!needed_[i] || slot_of_[i] == kNoSlot) continue;
      if (network_.layers[i].type == api::LayerType::kAdd) {
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

  void step_back(std::size_t i) {
    BackwardStep step{static_cast<std::int64_t>(i), slot_of_[i]};
    const LayerPlan& layer = network_.layers[i];
    const std::int64_t target = network_.gradient_target(layer);
    if (needs(target)) {
      std::int64_t& slot = slot_of_[static_cast<std::size_t>(target)];
      if (slot == kNoSlot) {
        slot = step.dx = take_slot();
      } else if (kind_of(layer.type).adds_gradients && slot != step.dy) {
        step.dx = slot;
        step.adds = true;
      } else {
        step.sum = slot;
        step.dx = take_slot();
        release(step.dx);
      }
    }
    release(step.dy);
    plan_.steps.push_back(step);
  }

  // What the block's layers give goes to add alone, so it takes over the slot. The shortcut may be
  // the input of a block around this one, which has a sum already.
  void step_back_add(std::size_t i) {
    const LayerPlan& layer = network_.layers[i];
    BackwardStep step{static_cast<std::int64_t>(i), slot_of_[i]};
    if (needs(layer.shortcut)) {
      std::int64_t& slot = slot_of_[static_cast<std::size_t>(layer.shortcut)];
      if (slot != kNoSlot) {
        step.dx = slot;
        step.adds = true;
      } else if (summands_share(layer)) {
        slot = step.dy;
        ++users_[static_cast<std::size_t>(slot)];
      } else {
        slot = step.dx = take_slot();
      }
    }
    if (needs(layer.source)) {
      slot_of_[static_cast<std::size_t>(layer.source)] = step.dy;
    } else {
      release(step.dy);
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
  const std::vector<bool> needed_;
  std::vector<std::int64_t> slot_of_;  // by layer
  std::vector<std::int64_t> users_;    // by slot: layers whose gradient it still is
  std::vector<std::int64_t> free_;
  BackwardPlan plan_;
};

}  // namespace

BackwardPlan plan_backward(const NetworkPlan& network) { return BackwardPlanner(network).run(); }

}  // namespace fettle::trainer
