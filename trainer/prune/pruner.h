// Pruner: keeps the pruned weights of a training at 0 (training.prune), on all workers alike.
//
// Rank 0 finds the mask in the gathered weights and sends it to the others, so all have the same
// one, however the optimiser is sharded. One thread, the learner's; all workers call it together.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "trainer/parallel/collective.h"
#include "trainer/prune/pruning.h"
#include "trainer/reporter/training_report.h"
#include "trainer/step/learner.h"

namespace fettle::trainer {

class Pruner {
 public:
  // Both must outlive the pruner.
  Pruner(Pruning pruning, Learner& learner, Collective& collective)
      : pruning_(std::move(pruning)), learner_(learner), collective_(collective) {}

  // Takes the mask from the zeros of the weights that the training starts from. Errors: a worker
  // was lost.
  Status begin() { return renew(std::nullopt); }
  // Whether before_step() changes anything; all earlier steps must be settled then.
  bool is_due(std::int64_t step) const { return pruning_.renews_before(step); }
  // Prunes the weights before this step; steps count from 0. Errors: a worker was lost.
  Status before_step(std::int64_t step) { return renew(step); }

  // They count the weights after the last renewal.
  Metrics metrics() const;

 private:
  // Absent: the mask of zeros.
  Status renew(std::optional<std::int64_t> step);

  const Pruning pruning_;
  Learner& learner_;
  Collective& collective_;
  std::int64_t dropped_ = 0;
};

}  // namespace fettle::trainer
