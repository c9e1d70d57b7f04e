#include "trainer/prune/pruning.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "base/check.h"
#include "kernels/operations.h"
#include "trainer/files/named_weights.h"

namespace fettle::trainer {
namespace {

constexpr std::int64_t kFour = 4;
constexpr double kHalf = 0.5;
constexpr std::int64_t kLongestInterval = 100;  // steps
constexpr std::int64_t kRenewals = 16;          // of a short training

std::int64_t step_at(double share, std::int64_t steps) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(share * static_cast<double>(steps)), 0,
                                  std::max<std::int64_t>(steps - 1, 0));
}

void drop(PruneMask& mask, std::int64_t weight) {
  constexpr std::int64_t kBits = kernels::kMaskBits;
  mask[static_cast<std::size_t>(weight / kBits)] &=
      static_cast<std::uint16_t>(~(1U << static_cast<unsigned>(weight % kBits)));
}

void keep(PruneMask& mask, const Block& block) {
  for (std::int64_t weight = block.offset; weight < block.offset + block.count; ++weight) {
    mask[static_cast<std::size_t>(weight / kernels::kMaskBits)] |=
        static_cast<std::uint16_t>(1U << static_cast<unsigned>(weight % kernels::kMaskBits));
  }
}

// Orders weights by magnitude, then by place.
auto smaller_in(std::span<const float> weights) {
  return [weights](std::int64_t a, std::int64_t b) {
    const float left = std::fabs(weights[static_cast<std::size_t>(a)]);
    const float right = std::fabs(weights[static_cast<std::size_t>(b)]);
    return left != right ? left < right : a < b;
  };
}

}  // namespace

Pruning::Pruning(const api::PruneConfig& config, std::int64_t steps)
    : pattern_(config.pattern),
      final_share_(config.sparsity.value_or(kHalf)),
      end_(step_at(config.end, steps)) {
  begin_ = std::min(step_at(config.begin, steps), end_);
  interval_ = std::clamp<std::int64_t>((end_ - begin_) / kRenewals, 1, kLongestInterval);
}

Result<Pruning> Pruning::create(const api::PruneConfig& config, const NetworkPlan& plan,
                                std::int64_t steps) {
  Pruning made(config, steps);
  CHECK(plan.decayed % kernels::kMaskBits == 0, "blocks of parameters fill whole lines");
  made.whole_.resize(static_cast<std::size_t>(plan.decayed / kernels::kMaskBits));
  for (const LayerPlan& layer : plan.layers) {
    for (const Block& block : {layer.weights, layer.positions}) {
      if (block.offset < plan.decayed) keep(made.whole_, block);
    }
    FETTLE_TRY(made.add(layer, plan));
  }
  return made;
}

Status Pruning::add(const LayerPlan& layer, const NetworkPlan& plan) {
  const bool linear = layer.type == api::LayerType::kLinear;
  if (!linear && layer.type != api::LayerType::kConv) return success();
  if (layer.frozen) return success();
  Layer pruned{.weights = layer.weights};
  const std::int64_t inputs =
      linear ? layer.weights.count / layer.output.channels : layer.input.channels;
  if (pattern_ == api::PrunePattern::kTwoOfFour && inputs % kFour != 0) {
    // As NVIDIA's tools have it: a convolution of colours is spared.
    if (!linear && layer.source == kNetworkInput) return success();
    return invalid("training.prune.pattern 2:4 does not fit " + layer.name + ", which has " +
                   std::to_string(inputs) + (linear ? " inputs" : " input channels") +
                   "; expected a multiple of 4, or pattern unstructured");
  }
  if (linear) {
    const std::string name = tensor_name(layer, "weight");
    for (const NamedWeight& weight : named_weights(plan)) {
      if (weight.name != name) continue;
      pruned.pixels = weight.pixels;
      pruned.channels = weight.channels;
    }
  }
  layers_.push_back(pruned);
  prunable_ += layer.weights.count;
  return success();
}

bool Pruning::renews_before(std::int64_t step) const {
  if (step < begin_ || step > end_) return false;
  return (step - begin_) % interval_ == 0 || step == end_;
}

double Pruning::share_at(std::int64_t step) const {
  if (step >= end_) return final_share_;
  const double left =
      std::min(1.0, static_cast<double>(end_ - step) / static_cast<double>(end_ - begin_));
  return final_share_ * (1 - left * left * left);
}

PruneMask Pruning::mask_of_zeros(std::span<const float> weights) const {
  PruneMask mask = whole_;
  for (const Layer& layer : layers_) {
    for (std::int64_t i = 0; i < layer.weights.count; ++i) {
      const std::int64_t weight = layer.weights.offset + i;
      if (weights[static_cast<std::size_t>(weight)] == 0) drop(mask, weight);
    }
  }
  return mask;
}

PruneMask Pruning::mask_at(std::int64_t step, std::span<const float> weights) const {
  PruneMask mask = mask_of_zeros(weights);
  const double share = share_at(step);
  for (const Layer& layer : layers_) {
    if (pattern_ == api::PrunePattern::kUnstructured) {
      drop_smallest(layer, share, weights, mask);
    } else {
      drop_in_fours(layer, static_cast<std::int64_t>(share * kFour), weights, mask);
    }
  }
  return mask;
}

// As many as torch.nn.utils.prune rounds to: half to even.
void Pruning::drop_smallest(const Layer& layer, double share, std::span<const float> weights,
                            PruneMask& mask) const {
  const std::int64_t dropped = std::llrint(share * static_cast<double>(layer.weights.count));
  if (dropped == 0) return;
  std::vector<std::int64_t> order(static_cast<std::size_t>(layer.weights.count));
  std::iota(order.begin(), order.end(), layer.weights.offset);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(dropped);
  if (end != order.end()) std::nth_element(order.begin(), end, order.end(), smaller_in(weights));
  for (auto at = order.begin(); at != end; ++at) drop(mask, *at);
}

void Pruning::drop_in_fours(const Layer& layer, std::int64_t dropped,
                            std::span<const float> weights, PruneMask& mask) {
  const std::int64_t row = layer.pixels * layer.channels;
  for (std::int64_t first = 0; first < layer.weights.count; first += kFour) {
    std::array<std::int64_t, kFour> group{};
    for (std::int64_t i = 0; i < kFour; ++i) {
      const std::int64_t in_row = (first + i) % row;
      const std::int64_t ours = in_row % layer.pixels * layer.channels + in_row / layer.pixels;
      group[static_cast<std::size_t>(i)] =
          layer.weights.offset + (first + i) / row * row + (row == 1 ? 0 : ours);
    }
    std::ranges::sort(group, smaller_in(weights));
    for (std::int64_t i = 0; i < dropped; ++i) drop(mask, group[static_cast<std::size_t>(i)]);
  }
}

std::int64_t Pruning::dropped_by(const PruneMask& mask) const {
  std::int64_t dropped = 0;
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    dropped += std::popcount(whole_[i]) - std::popcount(mask[i]);
  }
  return dropped;
}

}  // namespace fettle::trainer
