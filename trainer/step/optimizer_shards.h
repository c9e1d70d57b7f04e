// Shards the optimiser's state over workers (ZeRO, stage 1; Rajbhandari et al. 2020): a worker
// updates the weights whose state it has, and the new weights are gathered from all. Pure
// functions, and three that all workers call together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/data/batching.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"
#include "trainer/parallel/collective.h"
#include "trainer/step/optimizer.h"

namespace fettle::trainer {

// Worker r has elements bounds[r] to bounds[r + 1] - 1 of the parameter array: as even as whole
// cache lines allow. LAMB needs whole tensors: a tensor belongs to the worker in whose even share
// it begins.
std::vector<std::int64_t> shard_bounds(const NetworkPlan& plan, api::OptimizerKind optimizer,
                                       std::int64_t world_size);

// Bounds of the workers' shards. All empty: every worker has the whole optimiser.
struct ShardBounds {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> decayed;  // within the decayed parameters
  std::vector<std::int64_t> others;   // within the parameters behind them

  bool empty() const { return all.empty(); }
  // The parameters that this rank updates; nullopt: all.
  std::optional<Range> of(std::int64_t rank) const;
};
ShardBounds plan_shards(const api::TrainingConfig& config, const NetworkPlan& plan,
                        std::int64_t world_size);

// Gathers all workers' shards at rank 0; the result is empty elsewhere. All workers call it; only
// rank 0 needs memory for more than a piece. Errors: a worker was lost.
Result<std::vector<float>> gather_shards(Collective& collective, const std::vector<float>& mine,
                                         const std::vector<std::int64_t>& bounds);

// The masters of all weights, and the optimiser's whole state, at rank 0; empty elsewhere. Errors:
// a worker was lost; never without sharding.
Result<std::vector<float>> gather_masters(Collective& collective, const Parameters& parameters,
                                          const ShardBounds& shards);
Result<OptimizerState> gather_state(Collective& collective, const OptimizerStates& states,
                                    const Optimizer& optimizer, const ShardBounds& shards);

}  // namespace fettle::trainer
