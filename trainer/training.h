// Training: one trial's training from its newest checkpoint to its last step.
//
// Everything that decides the result is a function of the configuration, the seed and the position;
// stopping and starting again changes nothing (bit for bit on the reference backend). Each epoch
// ends with validation, a durable checkpoint and a report. One thread, besides the loader's and,
// with several workers, the thread that all-reduces gradients (gradient_sum.h).
//
// With several workers each runs the same training. Rank 0 alone reads and writes checkpoints and
// reports, and sends its starting point to the others. All workers end after the same step.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/trainer_config.h"
#include "api/trial_file.h"
#include "base/result.h"
#include "machine/gpu_meter.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/loader.h"
#include "trainer/data/training_data.h"
#include "trainer/parallel/collective.h"
#include "trainer/reporter/training_report.h"
#include "trainer/step/learner.h"
#include "trainer/step/learning_rate.h"
#include "trainer/step/memory_plan.h"
#include "trainer/step/training_device.h"
#include "trainer/trace/trace.h"

namespace fettle::trainer {

struct TrainingTask {
  api::TrainerConfig config;  // defaults need not be filled in
  std::uint64_t seed = 0;
  std::int64_t until_epoch = 1;  // stops there; the schedule is always training.epochs long
  std::string checkpoints;       // directory; "" = none are written
  CheckpointsKept keep;
  std::optional<CheckpointFence> fence;    // rank 0's claim to that directory; absent: not shared
  std::optional<api::ParentPlace> parent;  // a new trial takes its weights from it
  std::int64_t processes_here = 1;         // of this worker, which share the host's memory
  // Limit on the wait for a parent's checkpoint to appear: network file systems cache directories.
  std::chrono::milliseconds parent_patience = std::chrono::minutes(1);
  bool new_process = true;  // reports its start again: an earlier process may not have
};

// Callbacks of a training, called from its thread.
struct TrainingHooks {
  std::function<void(const EpochReport&)> report;
  std::function<void(const std::string&)> log;  // a line for people
  // Called at rank 0 at the start, with the number of whole epochs done; may be empty.
  std::function<void(std::int64_t)> begin;
  // Called in every optimiser step, near its end.
  std::function<bool()> should_stop;
  std::function<bool()> should_regroup;  // may be empty
  Trace* trace = nullptr;                // receives step times; may be null
};

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
  Result<Checkpoint> snapshot() const;

  Learner& learner() { return *learner_; }
  const Position& position() const { return position_; }
  // Optimiser steps whose results this training has taken.
  std::int64_t steps() const { return steps_; }

 private:
  Training(const TrainingTask& task, const TrainingData& data, Collective& collective,
           TrainingHooks hooks);

  // Errors: a worker reads other data than rank 0.
  Status agree_on_data();
  // Errors: there is too little memory.
  Status make_learner(TrainingDevice& device);
  // Exchanges the facts that joint work depends on: whether the optimiser is sharded, which must be
  // the same on all workers, and whether rank 0 keeps checkpoints.
  Status agree_with_others();

  // Start of a training; nullopt: the initial values of its seed.
  using Start = Result<std::optional<Checkpoint>>;
  Status restore(const std::optional<Checkpoint>& from);
  Start start_from_disk();
  Start start_from_parent();
  Result<Checkpoint> await_parent() const;
  Checkpoint fresh_start() const;
  // Sends rank 0's start, or its error, to the others.
  Status share(Start start);
  Status refuse_another_training(const Checkpoint& checkpoint, const std::string& from) const;
  // `parents`: the checkpoint is from a population, whose members may normalise differently.
  Status refuse_other_data(const Checkpoint& checkpoint, const std::string& from,
                           bool parents = false) const;
  Status refuse_another_model(const Checkpoint& checkpoint, const std::string& from) const;
  // Restores weights, the optimiser's state, position and scores.
  Status adopt(const Checkpoint& checkpoint);

  enum class StepEnding { kContinues, kStops, kRegroups, kDiverged };
  const LoadedBatch& next_batch(Loader& loader);
  Result<StepEnding> run_step(Loader& loader);
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

  void add_text_scores(const Score& score);
  api::Precision precision() const;  // resolves `auto` for this backend
  std::string describe();
  Metrics measure_epoch(const Loader& loader, double seconds);
  // The passes' implementations; null after rank 0's first report of a run.
  Json implementations_once();
  // Returns the checkpoint's path, at rank 0.
  Result<std::string> save_checkpoint();
  Status save_and_report(const Metrics& metrics, bool final_result);
  void report_start();
  Result<Ending> stop_within_epoch();
  // `what`: names the quantity that is not finite.
  Ending end_diverged(const std::string& what);
  std::string what_diverged() const;

  double learning_rate(std::int64_t step) const;
  double waited_for_data(const Loader& loader) const;
  bool is_final() const { return position_.epoch >= task_.until_epoch; }

  std::unique_ptr<TrainingDevice> own_device_;  // first: the learner is on it; may be null
  const TrainingTask task_;
  const TrainingData& data_;
  Collective& collective_;
  const TrainingHooks hooks_;
  Trace nowhere_;  // keeps no steps, but notifies an attached profiler
  Trace& trace_;   // the hooks' trace, or nowhere_
  const std::int64_t epochs_;
  const StepShape step_;
  const double base_rate_;
  const ScheduleLength length_;
  BatchWriter train_writer_;
  BatchWriter evaluation_writer_;
  CheckpointStore store_;
  std::vector<MappedFile> files_;   // the data's, as last seen
  std::string resumed_from_;        // this trial's newest checkpoint, at rank 0; "": another start
  bool keeps_checkpoints_ = false;  // rank 0 does; known to all workers
  std::unique_ptr<Learner> learner_;
  DataPlace place_ = DataPlace::kShared;
  std::optional<std::int64_t> planned_gpu_bytes_;  // absent if the backend uses host memory
  std::unique_ptr<machine::GpuMeter> gpu_meter_;   // rank 0's GPU, if it has one
  bool said_implementations_ = false;

  Position position_;
  std::deque<std::int64_t> begun_at_;  // offsets of the steps that are not settled
  std::int64_t steps_ = 0;             // settled and not undone
  EpochSums sums_;
  Metrics scores_;                // loss and accuracies after the newest whole epoch
  StepTimes times_;               // of this epoch in this run
  std::int64_t predictions_ = 0;  // of the settled steps of this epoch: images, or tokens
  double waited_ = 0;             // for data, at the start of the epoch
  double communicated_ = 0;       // the learner's, then
};

}  // namespace fettle::trainer
