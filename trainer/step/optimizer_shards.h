// Shards the optimiser's state over workers (ZeRO, stage 1; Rajbhandari et al. 2020): a worker
// updates the weights whose state it has, and the new weights are gathered from all. Pure
// functions, and one that all workers call together.
#pragma once

#include <cstdint>
#include <vector>

#include "api/trainer_config.h"
#include "base/result.h"
#include "trainer/model/network_plan.h"
#include "trainer/parallel/collective.h"

namespace fettle::trainer {

// Worker r has elements bounds[r] to bounds[r + 1] - 1 of the parameter array: as even as whole
// cache lines allow. LAMB needs whole tensors: a tensor belongs to the worker in whose even share
// it begins.
std::vector<std::int64_t> shard_bounds(const NetworkPlan& plan, api::OptimizerKind optimizer,
                                       std::int64_t world_size);

// Gathers all workers' shards at rank 0; the result is empty elsewhere. All workers call it; only
// rank 0 needs memory for more than a piece. Errors: a worker was lost.
Result<std::vector<float>> gather_shards(Collective& collective, const std::vector<float>& mine,
                                         const std::vector<std::int64_t>& bounds);

}  // namespace fettle::trainer
