// Learner: a network, its loss and its optimiser; makes optimiser steps out of micro-batches.
//
// Accumulation is exact: every micro-batch adds gradients summed over its samples; a step adds them
// up over all workers in one message, with the number of samples and the loss, and divides once by
// that number. So for one global batch the step is the same for every world size and every
// micro-batch size, up to the order of summation. Batch normalisation sees micro-batches, so a
// model with it is refused where they would be less than the batch (api/check_trainer.cpp).
// One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "api/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/collective.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/image_set.h"
#include "trainer/model/network.h"
#include "trainer/optimizer.h"

namespace fettle::trainer {

// Sums over samples, of all workers.
struct Score {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  double mean_loss() const { return loss / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
};

class Learner {
 public:
  // Errors: no such backend here; a layer that it cannot run.
  static Result<std::unique_ptr<Learner>> create(const api::TrainingConfig& config,
                                                 const NetworkPlan& plan, std::int64_t max_samples,
                                                 std::uint64_t seed, Collective& collective);

  Network& network() { return *network_; }
  Optimizer& optimizer() { return *optimizer_; }
  kernels::Backend& backend() { return *backend_; }

  // The masters were changed from outside (a checkpoint): brings all copies up to date.
  void weights_changed();

  // Forward and backward of one micro-batch; its gradients and loss are added up.
  void add(const Batch& batch, std::int64_t epoch);

  struct Step {
    Score score;  // of the whole global batch
    // False: loss or gradients are not finite, the same on all workers; the weights are unchanged.
    bool finite = true;
  };
  // Ends an optimiser step. Errors: a worker was lost.
  Result<Step> finish_step(double learning_rate);

  // Loss without label smoothing and accuracy on these samples, with running statistics.
  Score evaluate(const ImageSet& images, const Indices& samples, const BatchWriter& writer);

 private:
  Learner(const api::TrainingConfig& config, std::uint64_t seed, Collective& collective)
      : config_(config), seed_(seed), collective_(collective) {}

  const api::TrainingConfig config_;
  const std::uint64_t seed_;
  Collective& collective_;
  std::unique_ptr<kernels::Backend> backend_;  // before what is made by it
  std::unique_ptr<Network> network_;
  std::unique_ptr<kernels::SoftmaxCrossEntropyOp> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  Batch evaluated_;  // reused by evaluate()
  Score pending_;    // of this worker, since the last finish_step
};

kernels::DataType data_type(api::Precision precision);

}  // namespace fettle::trainer
