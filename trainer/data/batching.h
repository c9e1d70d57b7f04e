// Batching: assigns the samples of a global batch to workers, and cuts them into micro-batches.
//
// Samples are dealt by global index, never by rank: the batch is a run of consecutive positions in
// the epoch's order and every worker takes one consecutive share of it. So the samples of an
// optimiser step are the same for every world size and every limit on the samples that a worker
// holds at once, and a worker may get no samples (it still joins the collective).
// Batch normalisation takes its statistics over groups of consecutive positions, and quantised
// inputs their ranges; a group is a whole micro-batch, so groups are then dealt instead of single
// samples.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/trainer/trainer_config.h"

namespace fettle::trainer {

// Positions begin, ..., end - 1.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Part `part` of `parts` of `whole`: floor(n / parts) + (part < n mod parts) positions, in order.
// Requires parts >= 1 and 0 <= part < parts.
Range share_of(Range whole, std::int64_t parts, std::int64_t part);

// Cuts a worker's share into the fewest micro-batches of at most `limit` samples, whose sizes
// differ by at most one. An empty share gives no micro-batch. Requires limit >= 1.
std::vector<Range> micro_batches(Range share, std::int64_t limit);

// The receiver of a share of the batch, and the cut into micro-batches.
struct Dealing {
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::int64_t limit = 1;       // most samples in a micro-batch
  std::int64_t norm_group = 0;  // 0: no groups; else at most `limit`
};

// The micro-batches of one worker. With groups, the batch is cut into the fewest groups of at most
// norm_group samples, whose sizes differ by at most one, and the groups are dealt as samples are.
std::vector<Range> deal(Range batch, const Dealing& dealing);

// The cut of an optimiser step into micro-batches, as the busiest worker sees it.
struct StepShape {
  std::int64_t configured_batch = 0;  // what learning rates and the scale of sums follow
  std::int64_t global_batch = 0;      // at most the number of training samples
  Dealing dealing;                    // rank 0's; limit: the most samples held at once
  std::int64_t accumulation = 1;      // micro-batches of a step
  std::int64_t samples() const;       // of this worker in a step
};

// Micro-batches that the busiest worker (rank 0) needs for a full batch.
std::int64_t accumulation_steps(std::int64_t batch, const Dealing& dealing);

// Optimiser steps in one epoch: the last step takes the remainder.
std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch);

// Samples of one optimiser step. The configuration gives it for all workers or for each; defaults
// are filled in.
std::int64_t global_batch_of(const api::TrainingConfig& config, std::int64_t world_size);

// Samples in a group of batch normalisation, if a step has `batch`; 0: no groups.
std::int64_t norm_group_of(const api::TrainerConfig& config, std::int64_t batch);

// Most samples that a worker holds at once: the largest micro-batch of its share of a full batch.
// Operations are planned for this size, so it is one that runs, not the configured limit.
std::int64_t max_samples_of(const api::TrainingConfig& config, std::int64_t norm_group,
                            std::int64_t batch, std::int64_t world_size);

}  // namespace fettle::trainer
