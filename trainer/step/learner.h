// Learner: trains a network on a device; makes optimiser steps out of micro-batches.
//
// Accumulation is exact: every micro-batch adds gradients summed over its samples; a step sums them
// over all workers, with the number of samples and the loss, and divides once by that number. So
// for one global batch the step is the same for every world size and every micro-batch size, up to
// the order of summation. The passes and the running statistics are model_runner.h's, the sums over
// the workers gradient_exchange.h's.
//
// With training.shardOptimizer each of several workers updates the weights of its shard only, and
// the new weights are gathered (optimizer_shards.h): the same bits, for less memory and half as
// many bytes more on the way. In fp16 the loss is scaled (kernels/optimizer/step.h), and a step
// that overflows is skipped: everything but the scale stays unchanged, running statistics included.
//
// All work is enqueued on the backend, which decides by itself whether a step is applied. If
// batches always lie in the same place, the host learns the result of a step kResultsBehind steps
// later, so the backend never waits for it. All workers learn the result of a step after the same
// later step. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/batching.h"
#include "trainer/data/image_set.h"
#include "trainer/model/network.h"
#include "trainer/parallel/collective.h"
#include "trainer/step/batch_staging.h"
#include "trainer/step/gradient_exchange.h"
#include "trainer/step/model_runner.h"
#include "trainer/step/optimizer.h"
#include "trainer/step/optimizer_shards.h"
#include "trainer/step/training_device.h"
#include "trainer/trace/trace.h"

namespace fettle::trainer {

// Sums over the samples of all workers. The samples of a text are its tokens: each is a prediction.
struct Score {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  double mean_loss() const { return loss / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
};

// A worker's requests to all workers, sent with a step; one worker's request is enough.
struct WorkerRequests {
  bool stop = false;     // end here
  bool regroup = false;  // form the group again, because workers have joined or want to leave
};

class Learner {
 public:
  // `step`: only its configured batch and its limit count. Errors: the backend is not available
  // here; a layer that it cannot run; too little memory.
  static Result<std::unique_ptr<Learner>> create(const api::TrainingConfig& config,
                                                 const NetworkPlan& plan, const StepShape& step,
                                                 std::uint64_t seed, Collective& collective);
  // Uses this device instead, which must outlive the learner and serve no other meanwhile. `held`:
  // samples that the device holds, if its memory is not the host's.
  static Result<std::unique_ptr<Learner>> create_on(TrainingDevice& device,
                                                    const api::TrainingConfig& config,
                                                    const NetworkPlan& plan, const StepShape& step,
                                                    std::uint64_t seed, Collective& collective,
                                                    const std::optional<HeldSamples>& held = {});
  // On a new device with this backend, owned by the learner.
  static Result<std::unique_ptr<Learner>> create_on(std::unique_ptr<kernels::Backend> backend,
                                                    const api::TrainingConfig& config,
                                                    const NetworkPlan& plan, const StepShape& step,
                                                    std::uint64_t seed, Collective& collective,
                                                    const std::optional<HeldSamples>& held = {});

  Network& network() { return model_->network(); }
  Optimizer& optimizer() { return *optimizer_; }
  kernels::Backend& backend() const { return model_->backend(); }
  // The passes of this worker alone.
  ModelRunner& runner() { return *model_; }

  // Receives the times of a step's parts; nullptr: they are not taken. Must outlive the steps.
  void set_trace(Trace* trace);
  // Seconds that steps have spent in all-reduces, including waits for other workers; between GPUs,
  // seconds that the GPU has idled for them.
  double communicated() { return exchange_->seconds(); }
  // Seconds that the backend has idled in steps because a batch was still on its way.
  double waited_for_data() const { return model_->waited_for_data(); }

  // Updates all copies after the masters or the statistics were changed from outside (a
  // checkpoint).
  void weights_changed() { model_->weights_changed(); }

  // Prunes the weights that `mask` drops, now and after each step (Optimizer::set_mask).
  void set_mask(std::span<const std::uint16_t> mask);

  // Runs forward and backward for one micro-batch; its gradients, loss and statistics are summed.
  // With the last micro-batch of a step the workers begin to all-reduce: until finish_step() no
  // other code may use the collective or the membership.
  void add(const Batch& batch, std::int64_t epoch, bool last_of_step = false);

  struct Step {
    Score score;  // of the whole global batch
    // False: loss or gradients are not finite, in fp16 not even at the smallest loss scale. The
    // same on all workers; the weights are unchanged.
    bool finite = true;
    bool skipped = false;  // fp16 only: something overflowed; the next step has a smaller scale
    // A worker was lost before the gradients were summed (health() names it): the step is undone,
    // and so are all later ones.
    bool lost = false;
    WorkerRequests requests;  // of all workers
  };
  // Learning rates of the step, indexed by the skipped steps that are not known yet.
  using LearningRates = std::array<double, kernels::kResultsBehind + 1>;

  // Enqueues the end of an optimiser step. `requests`: this worker's. Errors: a worker was lost;
  // the step is undone, except with a sharded optimiser: then a part of its state is lost, too. If
  // GPUs all-reduce, the loss of a worker may show only in the step's result.
  Status finish_step(const LearningRates& rates, const WorkerRequests& requests = {});
  // The result of the oldest unsettled step, if more than `behind` steps are unsettled.
  std::optional<Step> settle(std::int64_t behind = 0);
  // Number of steps that may stay unsettled without making the backend wait.
  std::int64_t results_behind() const {
    return backend().shares_memory() ? 0 : kernels::kResultsBehind;
  }

  // Error of the last all-reduce that was abandoned; success if none is known.
  Status health() { return exchange_->health(); }

  bool shards_optimizer() const { return !shards_.empty(); }
  // The optimiser's whole state, and the masters of all weights, at rank 0; elsewhere empty. With a
  // sharded optimiser all workers must call them. Errors: a worker was lost; never without
  // sharding.
  Result<OptimizerState> optimizer_state() {
    return gather_state(collective_, states_, *optimizer_, shards_);
  }
  Result<std::vector<float>> whole_weights() {
    return gather_masters(collective_, network().parameters(), shards_);
  }

  // Loss (without label smoothing) and accuracy on these samples, with running statistics. Each
  // worker evaluates its share. Errors: a worker was lost.
  Result<Score> evaluate(const ImageSet& images, const Indices& samples, const BatchWriter& writer);

 private:
  Learner(const api::TrainingConfig& config, Collective& collective, ShardBounds shards,
          std::unique_ptr<ModelRunner> model);
  Status end_step_with_others();
  void enqueue_end();

  std::unique_ptr<TrainingDevice> own_device_;  // first: all else is in its memory; may be null
  Collective& collective_;
  const OptimizerStates states_;
  const ShardBounds shards_;
  std::unique_ptr<ModelRunner> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradientExchange> exchange_;  // its thread works on the model's gradients
  kernels::LossOptions loss_options_;
  std::optional<StagedBatch> deferred_;  // the last micro-batch, which finish_step() runs
  std::int64_t unsettled_ = 0;
  Trace* trace_ = nullptr;
};

}  // namespace fettle::trainer
