#include "trainer/model/activation_plan.h"

#include <algorithm>
#include <utility>

#include "trainer/model/backward_plan.h"
#include "trainer/model/layer_kinds.h"
#include "trainer/model/liveness.h"
#include "trainer/model/segments.h"

namespace fettle::trainer {

namespace {

// One 64-byte line holds 32 elements of two bytes, or 16 of four.
constexpr std::int64_t kElementsPerLine = 32;

// Size of a layer's output in memory, in elements of the network's type: whole lines. An fp32
// number in a 16-bit network counts as two.
std::int64_t elements_of(const LayerPlan& layer) {
  const std::int64_t elements = layer.output.size() * (layer.wide ? 2 : 1);
  return (elements + kElementsPerLine - 1) / kElementsPerLine * kElementsPerLine;
}

// A pass under construction, step by step. Places in its plan are still numbers of buffers. Every
// function that adds a step takes its number, `now`: the buffers that the step uses are live then.
struct Draft {
  const NetworkPlan& network;
  std::vector<std::int64_t> ends;  // the last layer of each segment, ascending
  BackwardPlan backward = plan_backward(network, ends);
  std::vector<bool> has_backward = {};  // by layer
  Liveness live = {};
  std::vector<std::int64_t> output_of = {};    // by layer: the buffer of its latest output
  std::vector<std::int64_t> gradient_in = {};  // by slot of the backward plan: its buffer
  ActivationPlan plan = {};

  // The loss is a separate step between the two passes.
  std::int64_t forward_steps() const { return std::ssize(plan.forward); }
  std::int64_t backward_steps() const { return forward_steps() + 1 + std::ssize(plan.backward); }
};

// ---- Buffers of a step -------------------------------------------------------------------------

std::int64_t write_output(Draft& draft, std::int64_t layer, std::int64_t now) {
  return draft.output_of[static_cast<std::size_t>(layer)] =
             draft.live.add(elements_of(draft.network.layer(layer)), now);
}

std::int64_t read_output(Draft& draft, std::int64_t layer, std::int64_t now) {
  if (layer == kNetworkInput) return kAtInput;
  return draft.live.extend(draft.output_of[static_cast<std::size_t>(layer)], now);
}

std::int64_t write_gradient(Draft& draft, std::int64_t slot, const LayerPlan& by_output_of,
                            std::int64_t now) {
  return draft.gradient_in[static_cast<std::size_t>(slot)] =
             draft.live.add(elements_of(by_output_of), now);
}

// Returns kNowhere for kNoSlot: the step has no such gradient.
std::int64_t use_gradient(Draft& draft, std::int64_t slot, std::int64_t now) {
  if (slot == kNoSlot) return kNowhere;
  return draft.live.extend(draft.gradient_in[static_cast<std::size_t>(slot)], now);
}

// ---- Forward -----------------------------------------------------------------------------------

// Whether layers i and i + 1 run as one. A cut between them forbids it: layer i + 1 then runs again
// alone, and must give the same bits as the first time.
bool runs_with_next(const Draft& draft, std::int64_t i) {
  const LayerPlan& next = draft.network.layer(i + 1);
  const bool takes_it =
      next.source == i || (next.type == api::LayerType::kAdd && next.shortcut == i);
  return takes_it && run_together(draft.network.layer(i), next) &&
         !std::ranges::binary_search(draft.ends, i);
}

ActivationStep forward_one(Draft& draft, std::int64_t i, std::int64_t now) {
  const LayerPlan& layer = draft.network.layer(i);
  ActivationStep step{.layer = i, .x = read_output(draft, layer.source, now)};
  if (layer.type == api::LayerType::kAdd) step.shortcut = read_output(draft, layer.shortcut, now);
  step.y = write_output(draft, i, now);
  return step;
}

// The step belongs to the one of the two layers that has parameters.
ActivationStep forward_both(Draft& draft, std::int64_t i, std::int64_t now) {
  const LayerPlan& next = draft.network.layer(i + 1);
  if (next.type == api::LayerType::kAdd) {
    // A batch norm that ends a block: its own output is never written, only the sum.
    const std::int64_t other = next.source == i ? next.shortcut : next.source;
    const std::int64_t x = read_output(draft, draft.network.layer(i).source, now);
    const std::int64_t y = write_output(draft, /*layer=*/i + 1, now);
    return {.layer = i, .x = x, .y = y, .shortcut = read_output(draft, other, now)};
  }
  ActivationStep step = forward_one(draft, i, now);
  const std::int64_t second = write_output(draft, i + 1, now);
  if (next.type == api::LayerType::kGelu) {
    step.gelu = second;
    return step;
  }
  // A norm that computes the sum in front of it.
  step.layer = i + 1;
  step.sum = std::exchange(step.y, second);  // y was the sum's buffer
  return step;
}

enum class ForwardPass { kFirst, kRepeat };  // a repeat is part of the backward pass

// Appends the forward steps of some layers to their pass. `wanted[n]`: whether layer `first` + n
// runs. Two neighbours that run together become one step.
void add_forward(Draft& draft, ForwardPass pass, std::int64_t first,
                 const std::vector<bool>& wanted) {
  const bool repeat = pass == ForwardPass::kRepeat;
  std::vector<ActivationStep>& steps = repeat ? draft.plan.backward : draft.plan.forward;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    if (!wanted[n]) continue;
    const std::int64_t layer = first + static_cast<std::int64_t>(n);
    const std::int64_t now = repeat ? draft.backward_steps() : draft.forward_steps();
    const bool both = n + 1 < wanted.size() && wanted[n + 1] && runs_with_next(draft, layer);
    steps.push_back(both ? forward_both(draft, layer, now) : forward_one(draft, layer, now));
    if (both) ++n;
  }
}

// ---- Loss and backward -------------------------------------------------------------------------

// The loss may write its gradient over the logits, unless the last layer reads them again.
void add_loss(Draft& draft) {
  const std::int64_t now = draft.forward_steps();
  const LayerPlan& last = draft.network.layers.back();
  const std::int64_t logits = read_output(draft, std::ssize(draft.network.layers) - 1, now);
  const bool read_again = draft.has_backward.back() && reads_of(last).output;
  draft.gradient_in[0] = logits;
  if (read_again) write_gradient(draft, 0, last, now);
  draft.plan.logits_gradient = draft.gradient_in[0];
}

// Returns a new buffer, unless the gradient is added to an existing one. A batch norm that steps
// back with an add has read the other part of its gradient and the add's output, both for the last
// time, when it writes dx (BatchNormOp::backward_end): dx then overwrites one of them.
std::int64_t place_of_dx(Draft& draft, const BackwardStep& back, std::int64_t y, std::int64_t now) {
  if (back.dx == kNoSlot) return kNowhere;
  const bool over_other = back.ends_block && back.dx == back.other;
  const bool over_y = back.ends_block && !over_other && y != kNowhere;
  if (over_y) draft.gradient_in[static_cast<std::size_t>(back.dx)] = y;
  if (back.adds || over_other || over_y) return use_gradient(draft, back.dx, now);
  const LayerPlan& source = draft.network.layer(draft.network.layer(back.layer).source);
  return write_gradient(draft, back.dx, source, now);
}

void add_backward_step(Draft& draft, const BackwardStep& back) {
  const std::int64_t now = draft.backward_steps();
  const LayerPlan& layer = draft.network.layer(back.layer);
  const BackwardReads reads = reads_of(layer);
  ActivationStep step{.forward = false, .layer = back.layer};
  if (reads.input) step.x = read_output(draft, layer.source, now);
  if (reads.output) step.y = read_output(draft, back.layer, now);
  const std::int64_t add = back.layer + 1;  // behind a batch norm that ends a block
  if (back.ends_block && reads_of(draft.network.layer(add)).output) {
    step.y = read_output(draft, add, now);
  }
  if (layer.gelu_before)
    step.before = read_output(draft, draft.network.gradient_target(layer), now);
  step.dy = use_gradient(draft, back.dy, now);
  step.other = use_gradient(draft, back.other, now);
  step.sum = use_gradient(draft, back.sum, now);
  step.adds = back.adds;
  step.dx = place_of_dx(draft, back, step.y, now);
  draft.plan.backward.push_back(step);
}

// Selects the layers of a segment that run again, between `before` and `end`, whose outputs are
// kept. A layer runs again if the segment's gradients need its output, or a layer that runs again
// does.
std::vector<bool> layers_to_repeat(const Draft& draft, std::int64_t before, std::int64_t end) {
  std::vector<bool> wanted(static_cast<std::size_t>(end - before), false);
  const auto want = [&](std::int64_t i) {
    if (i > before && i < end) wanted[static_cast<std::size_t>(i - before - 1)] = true;
  };
  // From the last to the first: whether a layer runs is known before its inputs are marked.
  for (std::int64_t i = end; i > before; --i) {
    const LayerPlan& layer = draft.network.layer(i);
    const BackwardReads reads = reads_of(layer);
    const bool has_backward = draft.has_backward[static_cast<std::size_t>(i)];
    if (has_backward && reads.output) want(i);
    const bool runs = wanted[static_cast<std::size_t>(i - before - 1)];
    if (runs || (has_backward && reads.input)) want(layer.source);
    if (has_backward && layer.gelu_before) want(draft.network.gradient_target(layer));
    if (runs && layer.type == api::LayerType::kAdd) want(layer.shortcut);
  }
  return wanted;
}

// A segment runs again before its first gradient, except for the last one, which has only just run.
void add_backward(Draft& draft) {
  std::size_t segment = draft.ends.size() - 1;  // the segment whose outputs are in memory
  for (const BackwardStep& back : draft.backward.steps) {
    while (segment > 0 && back.layer <= draft.ends[segment - 1]) {
      --segment;
      const std::int64_t before = segment == 0 ? kNetworkInput : draft.ends[segment - 1];
      const std::vector<bool> wanted = layers_to_repeat(draft, before, draft.ends[segment]);
      add_forward(draft, ForwardPass::kRepeat, before + 1, wanted);
      draft.plan.repeated += std::ranges::count(wanted, true);
    }
    add_backward_step(draft, back);
  }
}

// `ends`: the last layer of each segment, ascending, up to the network's last.
Draft draft_of(const NetworkPlan& network, std::vector<std::int64_t> ends) {
  const std::size_t layers = network.layers.size();
  Draft draft{.network = network, .ends = std::move(ends)};  // also plans draft.backward
  draft.has_backward.resize(layers, false);
  for (const BackwardStep& step : draft.backward.steps) {
    draft.has_backward[static_cast<std::size_t>(step.layer)] = true;
    // The add steps back in its batch norm's step.
    if (step.ends_block) draft.has_backward[static_cast<std::size_t>(step.layer + 1)] = true;
  }
  draft.output_of.resize(layers, kNowhere);
  draft.gradient_in.resize(static_cast<std::size_t>(draft.backward.slots), kNowhere);
  add_forward(draft, ForwardPass::kFirst, 0, std::vector<bool>(layers, true));
  add_loss(draft);
  add_backward(draft);
  return draft;
}

// ---- Places ------------------------------------------------------------------------------------

// The draft's plan, with places in the block instead of numbers of buffers.
ActivationPlan arranged(const Draft& draft) {
  const Liveness::Arrangement arrangement = draft.live.arrange();
  // kNowhere and kAtInput stay.
  const auto put = [&arrangement](std::int64_t& place) {
    if (place >= 0) place = arrangement.offsets[static_cast<std::size_t>(place)];
  };
  ActivationPlan plan = draft.plan;
  plan.elements = arrangement.elements;
  put(plan.logits_gradient);
  for (auto* steps : {&plan.forward, &plan.backward}) {
    for (ActivationStep& step : *steps) {
      for (auto* place : {&step.x, &step.y, &step.shortcut, &step.sum, &step.gelu, &step.before,
                          &step.dy, &step.other, &step.dx}) {
        put(*place);
      }
    }
  }
  return plan;
}

std::vector<std::int64_t> written_elements(const NetworkPlan& network) {
  std::vector<std::int64_t> elements;
  for (const LayerPlan& layer : network.layers) {
    elements.push_back(layer.ends_block ? 0 : elements_of(layer));
  }
  return elements;
}

}  // namespace

ActivationPlan plan_forward(const NetworkPlan& network) {
  const std::int64_t last = std::ssize(network.layers) - 1;
  Draft draft{.network = network, .ends = {last}, .backward = {}};
  draft.output_of.resize(network.layers.size(), kNowhere);
  add_forward(draft, ForwardPass::kFirst, 0, std::vector<bool>(network.layers.size(), true));
  draft.plan.logits_gradient = read_output(draft, last, draft.forward_steps());
  return arranged(draft);
}

// Each limit on the inside of a segment has its cheapest cuts. The least memory wins, then the
// fewest repeated layers. Without cuts no layer is repeated.
ActivationPlan plan_activations(const NetworkPlan& network, bool recompute) {
  std::vector<std::int64_t> best = {std::ssize(network.layers) - 1};
  const Draft whole = draft_of(network, best);
  if (!recompute) return arranged(whole);
  // The peak approximates the memory: no arrangement takes less, and arranging all drafts is slow.
  const auto cost = [](const Draft& draft) {
    return std::pair(draft.live.peak(), draft.plan.repeated);
  };
  auto least = cost(whole);
  const Segments segments(network, written_elements(network));
  for (const std::int64_t limit : segments.sizes()) {
    std::vector<std::int64_t> ends = segments.cheapest_cuts(limit);
    if (ends.empty()) continue;
    const auto found = cost(draft_of(network, ends));
    if (found >= least) continue;
    least = found;
    best = std::move(ends);
  }
  return arranged(draft_of(network, std::move(best)));
}

}  // namespace fettle::trainer
