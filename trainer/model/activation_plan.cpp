#include "trainer/model/activation_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "trainer/model/backward_plan.h"
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

// 32 elements of two bytes, or 16 of four, are one line of 64 bytes.
constexpr std::int64_t kElementsPerLine = 32;
// More limits than that are not tried; they are then evenly spaced among those there are.
constexpr std::size_t kMostLimits = 200;

std::int64_t room_for(std::int64_t elements) {
  return (elements + kElementsPerLine - 1) / kElementsPerLine * kElementsPerLine;
}

// Taken from step `begin` to step `end`, both included.
struct Buffer {
  std::int64_t size = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool meets(const Buffer& other) const { return begin <= other.end && other.begin <= end; }
};

// Every step of a pass with its buffers. In the steps places are still numbers of buffers.
class Timeline {
 public:
  // `ends`: the last layer of each segment, rising; the last is the network's.
  Timeline(const NetworkPlan& network, const BackwardPlan& backward, std::vector<std::int64_t> ends)
      : network_(network),
        backward_(backward),
        ends_(std::move(ends)),
        output_of_(network.layers.size(), kNowhere),
        gradient_in_(static_cast<std::size_t>(backward.slots), kNowhere),
        steps_back_(network.layers.size(), false) {
    for (const BackwardStep& step : backward.steps) {
      steps_back_[static_cast<std::size_t>(step.layer)] = true;
    }
    run(std::vector<bool>(network.layers.size(), true), 0, plan_.forward);
    take_logits_gradient();
    run_back();
  }

  const std::vector<Buffer>& buffers() const { return buffers_; }
  const ActivationPlan& plan() const { return plan_; }

  // Most elements that are taken at the same time: what no arrangement can do without.
  std::int64_t peak() const {
    std::vector<std::int64_t> change(static_cast<std::size_t>(now_) + 1, 0);
    for (const Buffer& buffer : buffers_) {
      change[static_cast<std::size_t>(buffer.begin)] += buffer.size;
      change[static_cast<std::size_t>(buffer.end) + 1] -= buffer.size;
    }
    std::int64_t taken = 0;
    std::int64_t most = 0;
    for (const std::int64_t by : change) most = std::max(most, taken += by);
    return most;
  }

 private:
  const LayerPlan& layer(std::int64_t i) const { return network_.layer(i); }

  std::int64_t take(const LayerPlan& giver) {
    buffers_.push_back({room_for(giver.output.size()), now_, now_});
    return std::ssize(buffers_) - 1;
  }
  std::int64_t take_output(std::int64_t i) {
    return output_of_[static_cast<std::size_t>(i)] = take(layer(i));
  }
  std::int64_t use(std::int64_t buffer) {
    buffers_[static_cast<std::size_t>(buffer)].end = now_;
    return buffer;
  }
  std::int64_t use_output(std::int64_t of) {
    return of == kNetworkInput ? kAtInput : use(output_of_[static_cast<std::size_t>(of)]);
  }
  std::int64_t use_gradient(std::int64_t slot) {
    return slot == kNoSlot ? kNowhere : use(gradient_in_[static_cast<std::size_t>(slot)]);
  }
  std::int64_t take_gradient(std::int64_t slot, const LayerPlan& giver) {
    return gradient_in_[static_cast<std::size_t>(slot)] = take(giver);
  }

  // Of the layers from `first` on those that are wanted.
  void run(const std::vector<bool>& wanted, std::int64_t first,
           std::vector<ActivationStep>& steps) {
    for (std::size_t n = 0; n < wanted.size(); ++n) {
      if (!wanted[n]) continue;
      const std::int64_t i = first + static_cast<std::int64_t>(n);
      const bool with_next = n + 1 < wanted.size() && wanted[n + 1] && runs_with_next(i);
      steps.push_back(with_next ? run_both(i) : run_one(i));
      n += with_next ? 1 : 0;
      ++now_;
    }
  }

  // Not over a cut: the second layer will run again by itself, and is to give the same bits then.
  bool runs_with_next(std::int64_t i) const {
    const LayerPlan& next = layer(i + 1);
    const bool takes =
        next.source == i || (next.type == api::LayerType::kAdd && next.shortcut == i);
    return takes && run_together(layer(i), next) && !std::ranges::binary_search(ends_, i);
  }

  ActivationStep run_one(std::int64_t i) {
    const LayerPlan& plan = layer(i);
    ActivationStep step{.layer = i, .x = use_output(plan.source)};
    if (plan.type == api::LayerType::kAdd) step.shortcut = use_output(plan.shortcut);
    step.y = take_output(i);
    return step;
  }

  // Layer i and the next. What a batch norm gives besides is not written.
  ActivationStep run_both(std::int64_t i) {
    const LayerPlan& next = layer(i + 1);
    if (next.type == api::LayerType::kAdd) {
      const std::int64_t other = next.source == i ? next.shortcut : next.source;
      return {.layer = i,
              .x = use_output(layer(i).source),
              .y = take_output(i + 1),
              .shortcut = use_output(other)};
    }
    ActivationStep step = run_one(i);
    if (next.type == api::LayerType::kGelu) {
      step.gelu = take_output(i + 1);
      return step;
    }
    step.layer = i + 1;
    step.sum = std::exchange(step.y, take_output(i + 1));
    return step;
  }

  // The loss may write it over the logits, unless the last layer reads these again.
  void take_logits_gradient() {
    const std::int64_t logits = use(output_of_.back());
    const bool again = steps_back_.back() && reads_of(network_.layers.back()).output;
    plan_.logits_gradient = gradient_in_[0] = again ? take(network_.layers.back()) : logits;
    ++now_;
  }

  void run_back() {
    std::size_t segment = ends_.size() - 1;
    for (const BackwardStep& step : backward_.steps) {
      while (segment > 0 && step.layer <= ends_[segment - 1]) {
        --segment;
        run_again(segment == 0 ? kNetworkInput : ends_[segment - 1], ends_[segment]);
      }
      step_back(step);
    }
  }

  void step_back(const BackwardStep& back) {
    const LayerPlan& plan = layer(back.layer);
    const BackwardReads reads = reads_of(plan);
    ActivationStep step{.forward = false, .layer = back.layer};
    if (reads.input) step.x = use_output(plan.source);
    if (reads.output) step.y = use_output(back.layer);
    if (plan.gelu_before) step.before = use_output(network_.gradient_target(plan));
    step.dy = use_gradient(back.dy);
    step.sum = use_gradient(back.sum);
    step.adds = back.adds;
    if (back.adds) step.dx = use_gradient(back.dx);
    if (back.dx != kNoSlot && !back.adds) step.dx = take_gradient(back.dx, layer(plan.source));
    plan_.backward.push_back(step);
    ++now_;
  }

  // The layers between `before` and `end`, whose own outputs are kept, as far as the gradients of
  // that segment need what they give.
  void run_again(std::int64_t before, std::int64_t end) {
    const auto count = static_cast<std::size_t>(end - before);
    std::vector<bool> wanted(count, false);
    const auto want = [&](std::int64_t i) {
      if (i > before && i < end) wanted[static_cast<std::size_t>(i - before - 1)] = true;
    };
    for (std::int64_t i = end; i > before; --i) {
      const LayerPlan& plan = layer(i);
      const BackwardReads reads = reads_of(plan);
      const bool steps_back = steps_back_[static_cast<std::size_t>(i)];
      if (steps_back && reads.output) want(i);
      const bool runs = wanted[static_cast<std::size_t>(i - before - 1)];
      if (runs || (steps_back && reads.input)) want(plan.source);
      if (steps_back && plan.gelu_before) want(network_.gradient_target(plan));
      if (runs && plan.type == api::LayerType::kAdd) want(plan.shortcut);
    }
    run(wanted, before + 1, plan_.backward);
    plan_.repeated += std::ranges::count(wanted, true);
  }

  const NetworkPlan& network_;
  const BackwardPlan& backward_;
  const std::vector<std::int64_t> ends_;
  std::vector<std::int64_t> output_of_;    // by layer: the newest buffer
  std::vector<std::int64_t> gradient_in_;  // by slot
  std::vector<bool> steps_back_;           // by layer
  std::vector<Buffer> buffers_;
  std::int64_t now_ = 0;
  ActivationPlan plan_;
};

// Places of buffers, the largest first, each as low as it can lie (Pisarchyk and Lee 2020,
// "Efficient Memory Management for Deep Neural Net Inference", greedy by size).
std::vector<std::int64_t> arrange(const std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].size > buffers[b].size; });
  std::vector<std::int64_t> places(buffers.size(), 0);
  std::vector<std::size_t> placed;  // by their places
  for (const std::size_t i : order) {
    std::int64_t place = 0;
    for (const std::size_t other : placed) {
      if (!buffers[i].meets(buffers[other])) continue;
      if (place + buffers[i].size <= places[other]) break;
      place = std::max(place, places[other] + buffers[other].size);
    }
    places[i] = place;
    const auto after = [&](std::int64_t value, std::size_t other) { return value < places[other]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), place, after), i);
  }
  return places;
}

ActivationPlan arranged(const Timeline& timeline) {
  const std::vector<Buffer>& buffers = timeline.buffers();
  const std::vector<std::int64_t> places = arrange(buffers);
  const auto put = [&](std::int64_t& place) {
    if (place >= 0) place = places[static_cast<std::size_t>(place)];
  };
  ActivationPlan plan = timeline.plan();
  put(plan.logits_gradient);
  for (auto* steps : {&plan.forward, &plan.backward}) {
    for (ActivationStep& step : *steps) {
      for (auto* place : {&step.x, &step.y, &step.shortcut, &step.sum, &step.gelu, &step.before,
                          &step.dy, &step.dx}) {
        put(*place);
      }
    }
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    plan.elements = std::max(plan.elements, places[i] + buffers[i].size);
  }
  return plan;
}

// Where a network can be cut, and what lies between.
class Cuts {
 public:
  explicit Cuts(const NetworkPlan& network) {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();  // read by a later layer
    const auto reads = [&lowest](std::int64_t source) {
      if (source != kNetworkInput) lowest = std::min(lowest, source);
    };
    for (std::int64_t i = std::ssize(network.layers) - 1; i >= 0; --i) {
      const LayerPlan& layer = network.layers[static_cast<std::size_t>(i)];
      if (lowest >= i && !layer.ends_block) ends_.push_back(i);
      reads(layer.source);
      if (layer.type == api::LayerType::kAdd) reads(layer.shortcut);
    }
    std::reverse(ends_.begin(), ends_.end());
    before_.push_back(0);
    for (const LayerPlan& layer : network.layers) {
      before_.push_back(before_.back() + (layer.ends_block ? 0 : room_for(layer.output.size())));
    }
  }

  // Sizes that a segment can have, rising.
  std::vector<std::int64_t> limits() const {
    std::vector<std::int64_t> all;
    for (std::size_t end = 0; end < ends_.size(); ++end) {
      for (std::size_t from = 0; from <= end; ++from) all.push_back(between(from, end));
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.size() <= kMostLimits) return all;
    std::vector<std::int64_t> some;
    for (std::size_t i = 1; i <= kMostLimits; ++i) {
      some.push_back(all[i * all.size() / kMostLimits - 1]);
    }
    return some;
  }

  // Ends of segments of at most `limit` elements, such that what is kept is least; empty: there are
  // none.
  std::vector<std::int64_t> segments(std::int64_t limit) const {
    constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> kept(ends_.size() + 1, kImpossible);  // up to the cut before that
    std::vector<std::size_t> begin(ends_.size(), 0);
    kept[0] = 0;
    for (std::size_t end = 0; end < ends_.size(); ++end) {
      for (std::size_t after = end + 1; after > 0; --after) {
        const std::size_t from = after - 1;
        if (between(from, end) > limit) break;
        if (kept[from] == kImpossible || kept[from] + size_of(end) >= kept[end + 1]) continue;
        kept[end + 1] = kept[from] + size_of(end);
        begin[end] = from;
      }
    }
    std::vector<std::int64_t> result;
    if (kept.back() == kImpossible) return result;
    for (std::size_t end = ends_.size(); end > 0; end = begin[end - 1]) {
      result.push_back(ends_[end - 1]);
    }
    std::reverse(result.begin(), result.end());
    return result;
  }

 private:
  std::int64_t size_of(std::size_t cut) const {
    const auto i = static_cast<std::size_t>(ends_[cut]);
    return before_[i + 1] - before_[i];
  }
  // What the layers give that lie after cut `from` - 1 (0: after the input) and before cut `end`.
  std::int64_t between(std::size_t from, std::size_t end) const {
    const auto first = from == 0 ? 0 : static_cast<std::size_t>(ends_[from - 1] + 1);
    return before_[static_cast<std::size_t>(ends_[end])] - before_[first];
  }

  std::vector<std::int64_t> ends_;    // layers
  std::vector<std::int64_t> before_;  // elements of all layers before
};

}  // namespace

ActivationPlan plan_activations(const NetworkPlan& network, bool recompute) {
  const BackwardPlan backward = plan_backward(network);
  Timeline best(network, backward, {std::ssize(network.layers) - 1});
  if (!recompute) return arranged(best);
  const auto cost = [](const Timeline& timeline) {
    return std::pair(timeline.peak(), timeline.plan().repeated);
  };
  auto best_segments = std::vector<std::int64_t>{std::ssize(network.layers) - 1};
  auto least = cost(best);
  const Cuts cuts(network);
  for (const std::int64_t limit : cuts.limits()) {
    std::vector<std::int64_t> segments = cuts.segments(limit);
    if (segments.empty()) continue;
    const auto found = cost(Timeline(network, backward, segments));
    if (found >= least) continue;
    least = found;
    best_segments = std::move(segments);
  }
  return arranged(Timeline(network, backward, std::move(best_segments)));
}

}  // namespace fettle::trainer
