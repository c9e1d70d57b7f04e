#include "trainer/model/segments.h"

#include <algorithm>
#include <limits>

namespace fettle::trainer {
namespace {

constexpr std::size_t kMostSizes = 200;  // each costs a search for cuts and a draft of the plan

}  // namespace

Segments::Segments(const NetworkPlan& network, const std::vector<std::int64_t>& elements) {
  // From the last layer to the first: the earliest layer that a layer behind i reads.
  std::int64_t earliest_read = std::numeric_limits<std::int64_t>::max();
  const auto reads = [&earliest_read](std::int64_t source) {
    if (source != kNetworkInput) earliest_read = std::min(earliest_read, source);
  };
  for (std::int64_t i = std::ssize(network.layers) - 1; i >= 0; --i) {
    const LayerPlan& layer = network.layer(i);
    // Layers behind i read nothing before it. No cut between a batch norm and its add: that output
    // is never written.
    if (earliest_read >= i && !layer.ends_block) cuts_.push_back(i);
    reads(layer.source);
    if (layer.type == api::LayerType::kAdd) reads(layer.shortcut);
  }
  std::ranges::reverse(cuts_);
  before_.push_back(0);
  for (const std::int64_t of_layer : elements) before_.push_back(before_.back() + of_layer);
}

// Elements of the output at the cut.
std::int64_t Segments::kept(std::size_t cut) const {
  const auto layer = static_cast<std::size_t>(cuts_[cut]);
  return before_[layer + 1] - before_[layer];
}

// Elements between cut `from` - 1 (0: the network's input) and cut `to`, without the kept output.
std::int64_t Segments::inside(std::size_t from, std::size_t to) const {
  const auto first = from == 0 ? 0 : static_cast<std::size_t>(cuts_[from - 1] + 1);
  return before_[static_cast<std::size_t>(cuts_[to])] - before_[first];
}

std::vector<std::int64_t> Segments::sizes() const {
  std::vector<std::int64_t> all;  // of every segment: from behind cut `from` - 1 to cut `to`
  for (std::size_t to = 0; to < cuts_.size(); ++to) {
    for (std::size_t from = 0; from <= to; ++from) all.push_back(inside(from, to));
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() <= kMostSizes) return all;
  std::vector<std::int64_t> some;
  for (std::size_t i = 1; i <= kMostSizes; ++i)
    some.push_back(all[i * all.size() / kMostSizes - 1]);
  return some;
}

// best[j] is the least number of elements kept in front of cut j, by a dynamic program:
//   best[0] = 0
//   best[j + 1] = min over i <= j with inside(i, j) <= limit of best[i] + kept(j)
// previous[j] is the i of that minimum: the segment that ends at cut j begins behind cut i - 1.
std::vector<std::int64_t> Segments::cheapest_cuts(std::int64_t limit) const {
  constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> best(cuts_.size() + 1, kImpossible);
  std::vector<std::size_t> previous(cuts_.size(), 0);
  best[0] = 0;
  for (std::size_t j = 0; j < cuts_.size(); ++j) {
    for (std::size_t i = j + 1; i-- > 0;) {
      if (inside(i, j) > limit) break;  // and so is every longer segment
      if (best[i] == kImpossible || best[i] + kept(j) >= best[j + 1]) continue;
      best[j + 1] = best[i] + kept(j);
      previous[j] = i;
    }
  }
  std::vector<std::int64_t> chosen;
  if (best.back() == kImpossible) return chosen;
  for (std::size_t end = cuts_.size(); end > 0; end = previous[end - 1]) {
    chosen.push_back(cuts_[end - 1]);
  }
  std::ranges::reverse(chosen);
  return chosen;
}

}  // namespace fettle::trainer
