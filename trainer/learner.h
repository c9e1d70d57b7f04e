// Learner: a network, its loss and its optimiser; makes optimiser steps out of micro-batches.
//
// Accumulation is exact: every micro-batch adds gradients summed over its samples; a step sums
// them over all workers, with the number of samples and the loss, and divides once by it. So
// for one global batch the step is the same for every world size and every micro-batch size, up to
// the order of summation. Batch normalisation sees micro-batches: the whole batch, or groups of it
// that do not depend on the workers (data/batching.h). Each group moves the running statistics from
// where the step found them, and the mean of the results, by samples, is where the step leaves
// them, whichever worker took the group and in whatever order. Gradients of a large network leave
// while the step's last backward pass is still under way (gradient_sum.h; between GPUs
// gradient_all_reduce.h); those of a small one are one message with all else that a step sums.
// With training.shardOptimizer each of several workers updates the weights of its shard only, and
// the new weights are gathered (optimizer_shards.h): the same bits, for less memory and half as
// many bytes more on the way. In fp16 the loss is scaled (kernels/optimizer/step.h), and a step
// that overflows is skipped: it changes nothing but the scale, running statistics included. All
// this is enqueued from the backend, which decides on its own whether a step is applied; where
// batches always lie in the same place, the calls are captured once and repeated, and the host
// learns the result of a step kResultsBehind steps later, so that the backend never waits for it.
// The same on all workers: they learn of a step after the same step. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/batch_staging.h"
#include "trainer/collective.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/image_set.h"
#include "trainer/gradient_all_reduce.h"
#include "trainer/gradient_sum.h"
#include "trainer/model/network.h"
#include "trainer/optimizer.h"
#include "trainer/repeated_work.h"
#include "trainer/trace/trace.h"
#include "trainer/training_device.h"

namespace fettle::trainer {

// Sums over samples, of all workers. A text's samples are its tokens here: each is a prediction.
struct Score {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  double mean_loss() const { return loss / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
};

// What a worker asks of all workers with a step; it is done if any one asks.
struct WorkerRequests {
  bool stop = false;     // end here
  bool regroup = false;  // meet again, because workers have joined or want to leave
};

class Learner {
 public:
  // Errors: no such backend here; a layer that it cannot run; too little memory.
  static Result<std::unique_ptr<Learner>> create(const api::TrainingConfig& config,
                                                 const NetworkPlan& plan, std::int64_t max_samples,
                                                 std::uint64_t seed, Collective& collective);
  // On this device instead, which must outlive the learner and be used by no other meanwhile.
  // `held`: samples that it holds, if its memory is not the host's.
  static Result<std::unique_ptr<Learner>> create_on(TrainingDevice& device,
                                                    const api::TrainingConfig& config,
                                                    const NetworkPlan& plan,
                                                    std::int64_t max_samples, std::uint64_t seed,
                                                    Collective& collective,
                                                    const std::optional<HeldSamples>& held = {});
  // On a device of its own with this backend.
  static Result<std::unique_ptr<Learner>> create_on(std::unique_ptr<kernels::Backend> backend,
                                                    const api::TrainingConfig& config,
                                                    const NetworkPlan& plan,
                                                    std::int64_t max_samples, std::uint64_t seed,
                                                    Collective& collective,
                                                    const std::optional<HeldSamples>& held = {});

  Network& network() { return *network_; }
  Optimizer& optimizer() { return *optimizer_; }
  kernels::Backend& backend() { return backend_; }
  bool scales_loss() const { return config_.precision == api::Precision::kFp16; }

  // Where the times of a step's parts go; nullptr: nowhere. Must outlive the steps.
  void set_trace(Trace* trace);
  // Seconds that steps have spent in all-reduces, waiting for each other included;
  // between GPUs, that these have stood still for it.
  double communicated() {
    return gradient_all_reduce_ ? gradient_all_reduce_->waited() : communicated_;
  }
  // Seconds that the backend has stood still in steps because a batch was still on its way.
  double waited_for_data() const { return waited_for_data_; }

  // The masters or the statistics were changed from outside (a checkpoint): brings all copies up to
  // date.
  void weights_changed();

  // Forward and backward of one micro-batch; its gradients, loss and statistics are summed. With
  // the last of a step the workers begin to all-reduce what they have: until finish_step() no
  // other code may use the collective or the membership.
  void add(const Batch& batch, std::int64_t epoch, bool last_of_step = false);

  struct Step {
    Score score;  // of the whole global batch
    // False: loss or gradients are not finite, the same on all workers; the weights are unchanged.
    // In fp16: not even at the smallest loss scale.
    bool finite = true;
    bool skipped = false;  // fp16 only: something overflowed; the next step has a smaller scale
    // A worker was lost before the gradients were summed, health() says which: the step is
    // undone, and so are those after it.
    bool lost = false;
    WorkerRequests requests;  // of all workers
  };
  // Of the step, by how many more steps were skipped than the settled ones tell.
  using LearningRates = std::array<double, kernels::kResultsBehind + 1>;

  // Enqueues the end of an optimiser step. `requests`: of this worker. Errors: a worker was lost;
  // the step is undone, unless the optimiser is sharded: then a part of its state is lost, too.
  // Where GPUs all-reduce, a loss may show only in the step's result.
  Status finish_step(const LearningRates& rates, const WorkerRequests& requests = {});
  // The result of the oldest step that is not settled, if there are more than `behind` of them.
  std::optional<Step> settle(std::int64_t behind = 0);
  // How many steps' results may be left for later without making the backend wait.
  std::int64_t results_behind() const {
    return backend_.shares_memory() ? 0 : kernels::kResultsBehind;
  }

  // Why a step's result is lost. Success: none is, as far as one knows.
  Status health();

  bool shards_optimizer() const { return !shard_bounds_.empty(); }
  // The state of the whole optimiser, and the masters of all weights, at rank 0; elsewhere empty.
  // Where the optimiser is sharded, all workers call them. Errors: a worker was lost; never where
  // it is not sharded.
  Result<OptimizerState> optimizer_state();
  Result<std::vector<float>> whole_weights();

  // Loss without label smoothing and accuracy on these samples, with running statistics. Each
  // worker takes its share of them. Errors: a worker was lost.
  Result<Score> evaluate(const ImageSet& images, const Indices& samples, const BatchWriter& writer);

 private:
  Learner(TrainingDevice& device, const api::TrainingConfig& config, std::uint64_t seed,
          Collective& collective);
  Status prepare(const NetworkPlan& plan, std::int64_t max_samples,
                 const std::optional<HeldSamples>& held);
  void plan_shards(const NetworkPlan& plan);
  std::optional<Range> shard() const;
  Status allocate(const NetworkPlan& plan, std::int64_t max_samples,
                  const std::optional<HeldSamples>& held);
  void plan_sums(const NetworkPlan& plan);
  bool is_traced() const { return trace_ != nullptr && trace_->is_on(); }
  // A step's last micro-batch and its end are one graph: nothing comes between them.
  bool ends_in_one_graph() const;
  void run_batch(const StagedBatch& staged);
  // What is enqueued for a micro-batch, and at the end of a step. `ends_step`: its loss is the
  // step's last and does what enqueue_step_sums() would.
  void enqueue_batch(const StagedBatch& batch, const Network::LayerDone& layer_done = {},
                     bool ends_step = false);
  void enqueue_step_sums();
  void enqueue_end();
  void run_end();
  Status run_end_with_others();
  void keep_statistics();
  Status sum_over_workers();
  Status gather_weights();
  Status gather(std::span<float> values, std::span<const std::int64_t> bounds);
  Status sum_gradients();
  // Everything but the scale is as the step found it.
  void undo_step();
  StagedBatch stage_evaluation(const ImageSet& images, std::span<const std::int64_t> samples,
                               const BatchWriter& writer);
  void run_evaluation(const StagedBatch& batch);
  void enqueue_evaluation(const StagedBatch& batch);

  std::unique_ptr<TrainingDevice> own_device_;  // first: all else is in its memory; may be none
  TrainingDevice& device_;
  kernels::Backend& backend_;
  const api::TrainingConfig config_;
  const std::uint64_t seed_;
  Collective& collective_;
  Network* network_ = nullptr;  // the device's
  std::unique_ptr<kernels::SoftmaxCrossEntropyOp> loss_;
  std::vector<std::int64_t> shard_bounds_;  // empty: every worker has the whole optimiser
  // Of the workers' shards: what they have of the decayed parameters, and of those behind.
  std::vector<std::int64_t> decayed_bounds_;
  std::vector<std::int64_t> other_bounds_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<BatchStaging> stage_;
  Batch evaluated_;                               // reused by evaluate()
  kernels::DeviceArray<kernels::LossSums> sums_;  // of this worker, since the last finish_step
  kernels::DeviceArray<kernels::LossSums> evaluation_sums_;
  kernels::DeviceArray<float> statistics_before_;  // where the step under way found them
  std::map<StagedBatch, RepeatedWork> batch_graphs_;
  std::map<StagedBatch, RepeatedWork> step_graphs_;  // of a last micro-batch, with the step's end
  std::map<StagedBatch, RepeatedWork> evaluation_graphs_;
  RepeatedWork end_graph_;
  std::optional<StagedBatch> deferred_;  // the last micro-batch, which finish_step() runs
  std::int64_t unsettled_ = 0;
  Trace* trace_ = nullptr;
  std::optional<TracedBackend> traced_;
  double communicated_ = 0;  // by the host's clock
  double waited_for_data_ = 0;
  DeviceCollective* gpus_ = nullptr;                      // nullptr: the hosts all-reduce
  std::optional<GradientAllReduce> gradient_all_reduce_;  // where the GPUs do, else the next
  std::optional<GradientSum> gradient_sum_;               // last: its thread works on the gradients
};

}  // namespace fettle::trainer
