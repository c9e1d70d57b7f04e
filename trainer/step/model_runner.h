// ModelRunner: a network on a device, with its loss and its batches: the passes of training and of
// evaluation. Knows neither the other workers nor the optimiser.
//
// Batch normalisation and quantised inputs see micro-batches: the whole batch, or groups of it that
// do not depend on the workers (data/batching.h). Each group updates the running statistics and
// ranges from their values before the step, and the mean of the results, weighted by samples, is
// their value after it, whichever worker took the group and in whatever order.
//
// All work is enqueued on the backend. If batches always lie in the same place, the calls are
// captured once and repeated (step_graphs.h). One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/batching.h"
#include "trainer/data/image_set.h"
#include "trainer/model/network.h"
#include "trainer/step/batch_staging.h"
#include "trainer/step/step_graphs.h"
#include "trainer/step/training_device.h"
#include "trainer/trace/trace.h"

namespace fettle::trainer {

// Called within a training pass, as a part of its graph; each may be empty.
struct PassHooks {
  Network::LayerDone layer_done = {};
  std::function<void()> pass_done = {};  // all gradients are complete
};

class ModelRunner {
 public:
  // `device` must outlive the runner and serve no other meanwhile. `shard`: the parameters that
  // this worker updates; nullopt: all. `held`: samples that the device holds, if its memory is not
  // the host's. Errors: a layer that the backend cannot run; too little memory.
  static Result<std::unique_ptr<ModelRunner>> create(TrainingDevice& device,
                                                     const api::TrainingConfig& config,
                                                     const NetworkPlan& plan, const StepShape& step,
                                                     std::uint64_t seed,
                                                     const std::optional<Range>& shard,
                                                     const std::optional<HeldSamples>& held);

  // From now on training passes learn from this network as well (kernels::LossTeacher). It takes
  // the same batches, in evaluation mode, and must have room for them.
  void set_teacher(std::unique_ptr<Network> teacher, const api::DistillConfig& config);

  // As Network::set_quantizes(), for training; evaluation is always without grids if the network is
  // trained on them.
  void set_quantizes(bool quantizes);

  Network& network() { return *network_; }
  kernels::Backend& backend() { return backend_; }
  StepGraphs& graphs() { return graphs_; }

  // Receives the times of the passes' parts; nullptr: they are not taken. Must outlive the passes.
  void set_trace(Trace* trace);
  // Whether passes are captured and repeated. Parts of a graph cannot be timed by themselves, so
  // a step that is traced is not captured.
  bool captures() const { return stage_->is_fixed() && !(trace_ != nullptr && trace_->is_on()); }
  // Seconds that the backend has idled in training because a batch was still on its way.
  double waited_for_data() const { return waited_for_data_; }

  // Updates all copies after the masters or the statistics were changed from outside.
  void weights_changed();

  // Brings a micro-batch of training to the backend (BatchStaging::bring).
  StagedBatch stage(const Batch& batch, std::int64_t epoch);
  // Adds the gradients, the loss and the statistics of the batch to those of the step.
  void run_batch(const StagedBatch& batch, const kernels::LossOptions& loss,
                 const PassHooks& hooks);
  // The same call by call, for work that is captured with others.
  void enqueue_batch(const StagedBatch& batch, const kernels::LossOptions& loss,
                     const PassHooks& hooks = {});
  // Enqueues the sums that this worker contributes to the step.
  void enqueue_step_sums(const kernels::StepInput* input);
  // Enqueues the end of a step behind its update: new statistics, and zero gradients.
  void enqueue_end(const kernels::StepControl* control);
  // Clears the gradients and restores the running statistics; the weights have not changed yet.
  void undo_step();

  // Sums of the loss (without label smoothing) over these samples, with running statistics.
  kernels::LossSums evaluate(const ImageSet& images, std::span<const std::int64_t> samples,
                             const BatchWriter& writer);
  // The logits of these samples, with running statistics; the network computes in fp32. `take`
  // receives them part by part, in order.
  using TakeLogits = std::function<void(std::span<const float> logits)>;
  void predict(const ImageSet& images, std::span<const std::int64_t> samples,
               const BatchWriter& writer, const TakeLogits& take);

 private:
  ModelRunner(TrainingDevice& device, std::uint64_t seed)
      : backend_(device.backend()), seed_(seed), graphs_(backend_) {}
  Status allocate(TrainingDevice& device, const StepShape& step, kernels::DataType type,
                  const std::optional<HeldSamples>& held);
  void keep_statistics();
  kernels::LossTeacher enqueue_teacher(const StagedBatch& batch);
  StagedBatch stage_evaluation(const ImageSet& images, std::span<const std::int64_t> samples,
                               const BatchWriter& writer);
  void run_evaluation(const StagedBatch& batch);
  void enqueue_evaluation(const StagedBatch& batch);

  kernels::Backend& backend_;
  const std::uint64_t seed_;
  Network* network_ = nullptr;        // the device's
  std::unique_ptr<Network> teacher_;  // may be null
  kernels::LossTeacher taught_;       // its settings
  std::unique_ptr<kernels::SoftmaxCrossEntropyOp> loss_;
  std::optional<BatchStaging> stage_;
  Batch evaluated_;                               // reused by evaluate()
  kernels::DeviceArray<kernels::LossSums> sums_;  // of this worker in the step under way
  kernels::DeviceArray<kernels::LossSums> evaluation_sums_;
  kernels::DeviceArray<float> statistics_before_;  // their values before the step under way
  StepGraphs graphs_;
  Trace* trace_ = nullptr;
  std::optional<TracedBackend> traced_;
  double waited_for_data_ = 0;
};

}  // namespace fettle::trainer
