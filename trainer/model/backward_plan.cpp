#include "trainer/model/backward_plan.h"

#include <algorithm>

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
      if (!needed_[i]) continue;
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
    const std::int64_t source = network_.layers[i].source;
    if (needs(source)) {
      step.dx = take_slot();
      std::int64_t& slot = slot_of_[static_cast<std::size_t>(source)];
      if (slot == kNoSlot) {
        slot = step.dx;
      } else {
        step.sum = slot;
        free_.push_back(step.dx);
      }
    }
    free_.push_back(step.dy);
    plan_.steps.push_back(step);
  }

  // What the block's layers give goes to add alone, so it takes over the slot. The shortcut may be
  // the input of a block around this one, which has a sum already.
  void step_back_add(std::size_t i) {
    const LayerPlan& layer = network_.layers[i];
    BackwardStep step{static_cast<std::int64_t>(i), slot_of_[i]};
    if (needs(layer.shortcut)) {
      std::int64_t& slot = slot_of_[static_cast<std::size_t>(layer.shortcut)];
      if (slot == kNoSlot) {
        slot = step.copy = take_slot();
      } else {
        step.sum = slot;
      }
    }
    if (needs(layer.source)) {
      slot_of_[static_cast<std::size_t>(layer.source)] = step.dy;
    } else {
      free_.push_back(step.dy);
    }
    plan_.steps.push_back(step);
  }

  std::int64_t take_slot() {
    if (free_.empty()) return plan_.slots++;
    const std::int64_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  const NetworkPlan& network_;
  const std::vector<bool> needed_;
  std::vector<std::int64_t> slot_of_;  // by layer
  std::vector<std::int64_t> free_;
  BackwardPlan plan_;
};

}  // namespace

BackwardPlan plan_backward(const NetworkPlan& network) { return BackwardPlanner(network).run(); }

}  // namespace fettle::trainer
