#include "trainer/step/optimizer_shards.h"

#include <algorithm>
#include <span>

namespace fettle::trainer {

namespace {

constexpr std::int64_t kFloatsPerLine = 16;
constexpr std::int64_t kPieceFloats = 1 << 18;  // gathered of a shard at once

// Offsets at which tensors begin; the gap behind a tensor belongs to it.
std::vector<std::int64_t> tensor_begins(const NetworkPlan& plan) {
  std::vector<std::int64_t> begins;
  for (const LayerPlan& layer : plan.layers) {
    for (const Block& block : {layer.weights, layer.biases, layer.positions}) {
      if (block.count > 0) begins.push_back(block.offset);
    }
  }
  std::ranges::sort(begins);
  return begins;
}

}  // namespace

std::vector<std::int64_t> shard_bounds(const NetworkPlan& plan, api::OptimizerKind optimizer,
                                       std::int64_t world_size) {
  const bool whole_tensors = optimizer == api::OptimizerKind::kLamb;
  const std::vector<std::int64_t> begins = tensor_begins(plan);
  std::vector<std::int64_t> bounds = {0};
  for (std::int64_t rank = 0; rank < world_size; ++rank) {
    const std::int64_t lines =
        share_of({0, plan.parameters / kFloatsPerLine}, world_size, rank).end;
    std::int64_t end = lines * kFloatsPerLine;  // for the last rank: all parameters
    if (whole_tensors) {
      const auto next = std::ranges::lower_bound(begins, end);
      end = next == begins.end() ? plan.parameters : *next;
    }
    bounds.push_back(end);
  }
  return bounds;
}

std::optional<Range> ShardBounds::of(std::int64_t rank) const {
  if (empty()) return std::nullopt;
  const auto i = static_cast<std::size_t>(rank);
  return Range{all[i], all[i + 1]};
}

ShardBounds plan_shards(const api::TrainingConfig& config, const NetworkPlan& plan,
                        std::int64_t world_size) {
  ShardBounds shards;
  if (!config.shard_optimizer.value_or(false) || world_size == 1) return shards;
  shards.all = shard_bounds(plan, config.optimizer, world_size);
  for (const std::int64_t bound : shards.all) {
    shards.decayed.push_back(std::min(bound, plan.decayed));
    shards.others.push_back(std::max(bound, plan.decayed) - plan.decayed);
  }
  return shards;
}

Result<std::vector<float>> gather_shards(Collective& collective, const std::vector<float>& mine,
                                         const std::vector<std::int64_t>& bounds) {
  const bool keeps = collective.rank() == 0;
  std::vector<float> whole(keeps ? static_cast<std::size_t>(bounds.back()) : 0);
  const auto shards = static_cast<std::size_t>(collective.world_size());
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < shards; ++i) longest = std::max(longest, bounds[i + 1] - bounds[i]);
  // In each round every worker sends the next piece of its shard, `begin` floats from the start;
  // worker i's piece begins at places[i] of the gathered array, and may be empty.
  for (std::int64_t begin = 0; begin < longest; begin += kPieceFloats) {
    std::vector<std::int64_t> places = {0};
    for (std::size_t i = 0; i < shards; ++i) {
      const std::int64_t left = bounds[i + 1] - bounds[i] - begin;
      places.push_back(places.back() + std::clamp(left, std::int64_t{0}, kPieceFloats));
    }
    std::vector<float> pieces(static_cast<std::size_t>(places.back()));
    const auto rank = static_cast<std::size_t>(collective.rank());
    // A shard that has ended contributes an empty piece.
    std::copy_n(mine.begin() + std::min(begin, std::ssize(mine)), places[rank + 1] - places[rank],
                pieces.begin() + places[rank]);
    FETTLE_TRY(collective.all_gather(pieces, places));
    if (!keeps) continue;
    for (std::size_t i = 0; i < shards; ++i) {
      if (places[i + 1] == places[i]) continue;
      std::copy(pieces.begin() + places[i], pieces.begin() + places[i + 1],
                whole.begin() + bounds[i] + begin);
    }
  }
  return whole;
}

Result<std::vector<float>> gather_masters(Collective& collective, const Parameters& parameters,
                                          const ShardBounds& shards) {
  const bool here = collective.rank() == 0;
  if (!parameters.kept) return here ? parameters.weights.download() : std::vector<float>();
  FETTLE_ASSIGN(std::vector<float> all,
                gather_shards(collective, parameters.shard.download(), shards.decayed));
  if (!here) return all;
  const std::vector<float> others = parameters.weights.download();  // whole on every worker
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

Result<OptimizerState> gather_state(Collective& collective, const OptimizerStates& states,
                                    const Optimizer& optimizer, const ShardBounds& shards) {
  OptimizerState state;
  if (shards.empty()) {
    if (collective.rank() > 0) return state;
    return OptimizerState{optimizer.state1.download(), optimizer.state2.download()};
  }
  if (states.first) {
    FETTLE_ASSIGN(state.first, gather_shards(collective, optimizer.state1.download(), shards.all));
  }
  if (states.second) {
    FETTLE_ASSIGN(state.second, gather_shards(collective, optimizer.state2.download(), shards.all));
  }
  return state;
}

}  // namespace fettle::trainer
