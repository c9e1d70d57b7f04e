// Training: one trial's training from its newest checkpoint to its last step.
//
// Everything that decides the result is a function of the configuration, the seed and the position;
// stopping and starting again changes nothing (bit for bit on the reference backend). Each epoch
// ends with validation, a durable checkpoint (of short epochs only some: training_reports.h) and a
// report. One thread, besides the loader's and, with several workers, the thread that all-reduces
// gradients (gradient_sum.h).
//
// With several workers each runs the same training. Rank 0 alone reads and writes checkpoints and
// reports, and sends its starting point to the others. All workers end after the same step.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/loader.h"
#include "trainer/data/training_data.h"
#include "trainer/epoch_meter.h"
#include "trainer/files/teacher.h"
#include "trainer/parallel/collective.h"
#include "trainer/prune/pruner.h"
#include "trainer/step/learner.h"
#include "trainer/step/learning_rate.h"
#include "trainer/step/memory_plan.h"
#include "trainer/step/training_device.h"
#include "trainer/trace/trace.h"
#include "trainer/training_parts.h"
#include "trainer/training_reports.h"
#include "trainer/training_start.h"
#include "trainer/training_task.h"

namespace fettle::trainer {

enum class Ending {
  kReached,   // until_epoch is done
  kDiverged,  // the loss is not finite: reported as a final NaN, a result like any other
  kStopped,   // should_stop said so; a checkpoint was written
  kRegroups,  // should_regroup said so, and no worker stops; snapshot() is where to resume
};

class Training {
 public:
  // `data` and `collective` must outlive the training. Starts from the newest checkpoint, else from
  // the parent's. `from`: where rank 0 starts instead, in its memory. Errors: a model that does not
  // fit the data; a backend that is not available; a checkpoint of another model or another
  // configuration; only damaged checkpoints; a worker whose configuration differs from rank 0's.
  static Result<std::unique_ptr<Training>> create(const TrainingTask& task,
                                                  const TrainingData& data, Collective& collective,
                                                  TrainingHooks hooks,
                                                  const std::optional<Checkpoint>& from = {});
  // Uses this device instead, which must outlive the training and serve no other meanwhile.
  static Result<std::unique_ptr<Training>> create_on(TrainingDevice& device,
                                                     const TrainingTask& task,
                                                     const TrainingData& data,
                                                     Collective& collective, TrainingHooks hooks,
                                                     const std::optional<Checkpoint>& from = {});
  // On a new device with this backend, owned by the training.
  static Result<std::unique_ptr<Training>> create_on(std::unique_ptr<kernels::Backend> backend,
                                                     const TrainingTask& task,
                                                     const TrainingData& data,
                                                     Collective& collective, TrainingHooks hooks,
                                                     const std::optional<Checkpoint>& from = {});

  // Call once. Errors: a checkpoint cannot be written; kUnavailable: a worker was lost.
  Result<Ending> run();

  // The state to resume from, at rank 0 (elsewhere empty): the end of the last step that all
  // workers made. With a sharded optimiser all workers call it, and it fails if one is lost.
  Result<Checkpoint> snapshot() const { return take_snapshot(parts(), state_); }

  Learner& learner() { return *learner_; }
  const Position& position() const { return state_.position; }
  // Optimiser steps whose results this training has taken.
  std::int64_t steps() const { return steps_; }

 private:
  Training(const TrainingTask& task, const TrainingData& data, Collective& collective,
           TrainingHooks hooks);
  // Errors: there is too little memory.
  Status make_learner(TrainingDevice& device, const std::optional<Teacher>& teacher);
  Status start(const std::optional<Checkpoint>& from);
  TrainingParts parts() const;

  enum class StepEnding { kContinues, kStops, kRegroups, kDiverged };
  Result<StepEnding> run_step(Loader& loader);
  // The number of the next step, from 0; skipped steps count.
  std::int64_t step_number() const {
    return state_.position.epoch * rates_.length().steps_per_epoch +
           state_.position.offset / step_.global_batch;
  }
  // Begins to train on the grids of 8-bit integers, if the next epoch does and this process has not
  // yet.
  Status quantize();
  // Renews the mask of pruned weights, if it is due before the next step.
  Result<StepEnding> prune();
  // Takes the results of all but the newest `behind` steps. Errors: a worker was lost; the position
  // is then that of the first undone step.
  Result<StepEnding> settle_steps(std::int64_t behind);
  Learner::LearningRates learning_rates() const;
  // Returns a value if the run ends before the epoch does.
  Result<std::optional<Ending>> run_steps_of_epoch(Loader& loader);
  WorkerRequests own_requests() const;
  // Requests of all workers, gathered when no step carries them.
  Result<WorkerRequests> all_requests();
  // Errors: data files were modified, here or on another worker.
  Status check_data();
  Status finish_epoch(Loader& loader, double seconds);
  // Validates the 8-bit network, if the configuration asks for it, at a rung and at the end.
  // Errors: a worker was lost.
  Status add_int8_scores();
  bool ends_or_waits() const;  // the epoch is a rung, or the last
  // Scores of the newest whole epoch, and the network's cost in use; at a rung and at the end with
  // its latency. At rank 0; elsewhere the scores.
  Metrics results();
  Ending end_diverged(const std::string& what);
  bool is_final() const { return state_.position.epoch >= task_.until_epoch; }

  std::unique_ptr<TrainingDevice> own_device_;  // first: the learner is on it; may be null
  const TrainingTask task_;
  const TrainingData& data_;
  Collective& collective_;
  const TrainingHooks hooks_;
  Trace nowhere_;  // keeps no steps, but notifies an attached profiler
  Trace& trace_;   // the hooks' trace, or nowhere_
  const StepShape step_;
  const RateSchedule rates_;
  BatchWriter train_writer_;
  BatchWriter evaluation_writer_;
  CheckpointStore store_;
  std::vector<MappedFile> files_;  // the data's, as last seen
  std::unique_ptr<Learner> learner_;
  std::optional<Pruner> pruner_;
  std::optional<EpochMeter> meter_;
  std::optional<TrainingReports> reports_;
  DataPlace place_ = DataPlace::kShared;

  TrainingState state_;
  std::string resumed_from_;           // as TrainingStart says
  std::deque<std::int64_t> begun_at_;  // offsets of the steps that are not settled
  std::int64_t steps_ = 0;             // settled and not undone
};

}  // namespace fettle::trainer
