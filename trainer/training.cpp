#include "trainer/training.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/study/resolve.h"
#include "api/trial/metric_names.h"
#include "trainer/data/batching.h"
#include "trainer/int8_metrics.h"
#include "trainer/model_metrics.h"
#include "trainer/norm_samples.h"
#include "trainer/step/device_metrics.h"
#include "trainer/step/precision.h"

namespace fettle::trainer {

namespace metric = api::metric;

namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TrainingTask with_defaults(TrainingTask task) {
  api::fill_in_defaults(task.config.training, task.until_epoch);
  return task;
}

// "images 28×28×1, 10 classes, content 8f0c2a51".
std::string describe_samples(const TrainingData& data) {
  const ImageSet& images = data.images;
  const std::string kind = images.pixel_type() == PixelType::kToken
                               ? std::to_string(images.shape().height) + " tokens each"
                               : "images " + to_string(images.shape());
  return kind + ", " + std::to_string(images.classes()) + " classes, content " +
         data.fingerprint.digest();
}

Metrics scores_of(const api::DataConfig& data, const EpochSums& training, const Score& validation) {
  Metrics scores = {{metric::kLoss, training.loss / static_cast<double>(training.samples)},
                    {metric::kValidationLoss, validation.mean_loss()},
                    {metric::kValidationAccuracy, validation.accuracy()}};
  if (!is_text(data)) return scores;
  scores.emplace_back(metric::kValidationPerplexity, std::exp(validation.mean_loss()));
  if (data.format == "text") {
    scores.emplace_back(metric::kValidationBits, validation.mean_loss() / std::numbers::ln2);
  }
  return scores;
}

// Exchanges the facts that joint work depends on: whether the optimiser is sharded, which must be
// the same on all workers, and whether rank 0 keeps checkpoints, which it returns.
Result<bool> agree_with_others(Collective& collective, bool shards_optimizer, bool keeps_any) {
  const auto workers = static_cast<double>(collective.world_size());
  const bool keeps = collective.rank() == 0 && keeps_any;
  std::array<double, 2> sums = {shards_optimizer ? 1.0 : 0.0, keeps ? 1.0 : 0.0};
  FETTLE_TRY(collective.sum(std::span<double>(sums)));
  if (sums[0] == 0 || sums[0] == workers) return sums[1] > 0;
  return invalid("training.shardOptimizer is true for " +
                 std::to_string(static_cast<std::int64_t>(sums[0])) + " of " +
                 std::to_string(collective.world_size()) + " workers; expected all or none");
}

const LoadedBatch& next_batch(Loader& loader, Trace& trace) {
  const Span span(&trace, "data wait");
  return loader.next();
}

std::string describe(const TrainingParts& parts, DataPlace place) {
  Learner& learner = parts.learner;
  const api::Precision precision =
      precision_on(learner.backend(), parts.task.config.training.precision);
  return std::to_string(learner.network().plan().trained()) + " parameters, " +
         std::to_string(parts.data.split.train.size()) + " training and " +
         std::to_string(parts.data.split.validation.size()) + " validation samples (" +
         describe_samples(parts.data) + "), backend " + std::string(learner.backend().name()) +
         ", " + std::string(api::to_string(precision)) + ", data " + std::string(to_string(place)) +
         ", until epoch " + std::to_string(parts.task.until_epoch);
}

}  // namespace

Training::Training(const TrainingTask& task, const TrainingData& data, Collective& collective,
                   TrainingHooks hooks)
    : task_(with_defaults(task)),
      data_(data),
      collective_(collective),
      hooks_(std::move(hooks)),
      nowhere_(collective.rank(), /*steps=*/0),
      trace_(hooks_.trace != nullptr ? *hooks_.trace : nowhere_),
      step_(plan_step(task_.config, world_of(data, collective.world_size()))),
      rates_(task_.config.training, step_.configured_batch,
             {steps_per_epoch(std::ssize(data.split.train), step_.global_batch),
              *task_.config.training.epochs}),
      train_writer_(data.normalize, task.config.data.augment,
                    data_type(task.config.training.precision), task.seed),
      evaluation_writer_(data.normalize, {}, data_type(task.config.training.precision), task.seed),
      store_(task.checkpoints, task.keep, task.fence),
      files_(data.files) {}

Result<std::unique_ptr<Training>> Training::create(const TrainingTask& task,
                                                   const TrainingData& data, Collective& collective,
                                                   TrainingHooks hooks,
                                                   const std::optional<Checkpoint>& from) {
  FETTLE_ASSIGN(auto backend, open_backend(task.config.training));
  return create_on(std::move(backend), task, data, collective, std::move(hooks), from);
}

Result<std::unique_ptr<Training>> Training::create_on(std::unique_ptr<kernels::Backend> backend,
                                                      const TrainingTask& task,
                                                      const TrainingData& data,
                                                      Collective& collective, TrainingHooks hooks,
                                                      const std::optional<Checkpoint>& from) {
  auto device = std::make_unique<TrainingDevice>(std::move(backend));
  FETTLE_ASSIGN(auto training, create_on(*device, task, data, collective, std::move(hooks), from));
  training->own_device_ = std::move(device);
  return training;
}

Result<std::unique_ptr<Training>> Training::create_on(TrainingDevice& device,
                                                      const TrainingTask& task,
                                                      const TrainingData& data,
                                                      Collective& collective, TrainingHooks hooks,
                                                      const std::optional<Checkpoint>& from) {
  FETTLE_ASSIGN(const std::optional<Teacher> teacher, read_teacher(task.config, data));
  TrainingTask whole = task;
  FETTLE_ASSIGN(whole.files, hash_files(task.config));
  std::unique_ptr<Training> training(new Training(whole, data, collective, std::move(hooks)));
  if (const std::int64_t epochs = training->rates_.length().epochs; task.until_epoch > epochs) {
    return invalid("the trial is to run until epoch " + std::to_string(task.until_epoch) +
                   ", but training.epochs is " + std::to_string(epochs));
  }
  FETTLE_TRY(agree_on_data(task.config.data, data, collective));
  FETTLE_TRY(training->make_learner(device, teacher));
  FETTLE_TRY(training->start(from));
  return training;
}

Status Training::make_learner(TrainingDevice& device, const std::optional<Teacher>& teacher) {
  const api::TrainerConfig& config = task_.config;
  FETTLE_ASSIGN(const NetworkPlan plan, plan_network(config, data_.format()));
  TrainingWorld world =
      world_of(data_, collective_.world_size(), collective_.rank() == 0 && store_.keeps_any());
  if (teacher) world.teacher = memory_of_teacher(teacher->plan, config.training.precision);
  FETTLE_TRY(check_norm_samples(config, plan, world));
  FETTLE_ASSIGN(world.int8_network, int8_network_bytes(config, data_.format(), world));
  std::optional<Pruning> pruning;
  if (config.training.prune) {
    const ScheduleLength& length = rates_.length();
    FETTLE_ASSIGN(pruning, Pruning::create(*config.training.prune, plan,
                                           length.epochs * length.steps_per_epoch));
  }
  std::unique_lock<std::mutex> allocating;
  if (hooks_.allocating != nullptr && !device.backend().shares_memory()) {
    allocating = std::unique_lock(*hooks_.allocating);
  }
  AvailableMemory available = available_memory(device.backend(), task_.processes_here);
  // Memory that the previous training left there is reused or released.
  if (available.device) *available.device += device.kept_bytes();
  const kernels::PlanOptions options =
      plan_options(device.backend(), config.training, step_.dealing.limit);
  FETTLE_ASSIGN(const Workspaces workspaces,
                workspaces_of(device, plan, teacher ? &teacher->plan : nullptr, options));
  place_ = place_data(config, plan, world, available, workspaces);
  const MemoryPlan memory = plan_memory(config, plan, world, place_, workspaces);
  FETTLE_TRY(check_memory(config, memory, available));
  std::optional<HeldSamples> held;
  if (place_ == DataPlace::kHeld) {
    held = HeldSamples{&data_.images, &train_writer_, &evaluation_writer_};
  } else {
    device.release_samples();
  }
  if (teacher && workspaces) FETTLE_TRY(device.reserve(*workspaces));
  FETTLE_ASSIGN(learner_, Learner::create_on(device, config.training, plan, step_, task_.seed,
                                             collective_, held));
  if (teacher) {
    FETTLE_ASSIGN(auto network,
                  Network::create_forward_only(teacher->plan, device.backend(), options,
                                               teacher->weights, teacher->statistics));
    learner_->runner().set_teacher(std::move(network), *config.training.distill);
  }
  if (pruning) pruner_.emplace(std::move(*pruning), *learner_, collective_);
  learner_->set_trace(&trace_);
  if (device.reused_network()) hooks_.log("keeps its network, with its plans and memory");
  EpochMeter::Settings settings{.precision = config.training.precision,
                                .global_batch = step_.global_batch,
                                .accumulation = step_.accumulation,
                                .planned_gpu_bytes = {},
                                .shares_process = task_.shares_process};
  if (memory.has_device()) settings.planned_gpu_bytes = memory.total();
  meter_.emplace(*learner_, collective_, settings);
  return success();
}

Status Training::start(const std::optional<Checkpoint>& from) {
  FETTLE_ASSIGN(const bool keeps_checkpoints,
                agree_with_others(collective_, learner_->shards_optimizer(), store_.keeps_any()));
  reports_.emplace(parts(), keeps_checkpoints);
  TrainingStart start(parts());
  FETTLE_ASSIGN(state_, start.restore(from));
  resumed_from_ = start.resumed_from();
  if (learner_->network().plan().trains_quantized()) learner_->runner().set_quantizes(false);
  return pruner_ ? pruner_->begin() : success();
}

TrainingParts Training::parts() const {
  return {.task = task_,
          .data = data_,
          .collective = collective_,
          .hooks = hooks_,
          .trace = trace_,
          .store = store_,
          .learner = *learner_};
}

// ---- The loop ----------------------------------------------------------------------------------

Result<Ending> Training::run() {
  if (collective_.rank() == 0) hooks_.log(describe(parts(), place_));
  if (is_final()) {
    // An earlier run ended between its last checkpoint and its last report: report now.
    FETTLE_TRY(reports_->save_and_report(state_, results(), true));
    return Ending::kReached;
  }
  if (reports_->repeats_report(state_, resumed_from_)) {
    reports_->repeat_report(state_, results(), resumed_from_);
  }
  reports_->report_start(state_);
  const LoaderSettings settings{.seed = task_.seed,
                                .epochs = task_.until_epoch,
                                .global_batch = step_.global_batch,
                                .world_size = collective_.world_size(),
                                .rank = collective_.rank(),
                                .max_samples = step_.dealing.limit,
                                .norm_group = step_.dealing.norm_group,
                                .deals_only = place_ == DataPlace::kHeld};
  Loader loader(data_.images, data_.split.train, train_writer_, settings, state_.position);
  while (!is_final()) {
    const Stopwatch watch;
    FETTLE_TRY(quantize());
    FETTLE_ASSIGN(const std::optional<Ending> ended, run_steps_of_epoch(loader));
    if (ended) return *ended;
    FETTLE_ASSIGN(const Score score,
                  learner_->evaluate(data_.images, data_.split.validation, evaluation_writer_));
    FETTLE_TRY(check_data());  // before anything of this epoch is saved
    if (!std::isfinite(score.loss)) return end_diverged("the validation loss is not finite");
    state_.scores = scores_of(task_.config.data, state_.sums, score);
    FETTLE_TRY(finish_epoch(loader, watch.seconds()));
    if (is_final()) break;  // the same on all workers, so none waits in all_requests()
    FETTLE_ASSIGN(const WorkerRequests requests, all_requests());
    if (requests.stop) {
      FETTLE_TRY(reports_->catch_up(state_));
      return Ending::kStopped;
    }
    if (requests.regroup) return Ending::kRegroups;
  }
  return Ending::kReached;
}

Result<std::optional<Ending>> Training::run_steps_of_epoch(Loader& loader) {
  meter_->begin(loader);
  while (state_.position.offset < std::ssize(data_.split.train)) {
    FETTLE_ASSIGN(const StepEnding ending, run_step(loader));
    if (ending == StepEnding::kDiverged) {
      return std::optional(end_diverged(
          scales_loss(task_.config.training)
              ? "fp16 overflows even at the smallest loss scale (numbers this large need bf16 or "
                "fp32)"
              : "the loss is not finite"));
    }
    if (ending == StepEnding::kRegroups) return std::optional(Ending::kRegroups);
    if (ending == StepEnding::kStops) {
      // Within an epoch there are no metrics to report.
      FETTLE_TRY(reports_->save_and_report(state_, {}, false));
      return std::optional(Ending::kStopped);
    }
  }
  return std::optional<Ending>();
}

Result<Training::StepEnding> Training::run_step(Loader& loader) {
  trace_.begin_step();
  const Span span(&trace_, "step");
  if (pruner_ && pruner_->is_due(step_number())) {
    FETTLE_ASSIGN(const StepEnding ending, prune());
    if (ending != StepEnding::kContinues) return ending;
  }
  const Stopwatch watch;
  Range global;
  bool asks = false;  // whether the step carries this worker's requests
  WorkerRequests requests;
  for (bool last = false; !last;) {
    const LoadedBatch& loaded = next_batch(loader, trace_);
    global = loaded.global;
    last = loaded.last_of_step;
    // After the last step of an epoch the requests are asked once the epoch is validated and
    // reported.
    asks = last && global.end < std::ssize(data_.split.train);
    if (asks) requests = own_requests();  // before the workers' connections are in use
    learner_->add(loaded.batch, state_.position.epoch, last);
  }
  if (Status finished = learner_->finish_step(learning_rates(), requests); !finished.ok()) {
    (void)settle_steps(0);  // takes the results of earlier steps; the others resume there
    return finished.error();
  }
  begun_at_.push_back(state_.position.offset);
  state_.position.offset = global.end;
  // The last step of an epoch leaves no step unsettled: the report needs all results.
  FETTLE_ASSIGN(const StepEnding ending, settle_steps(asks ? learner_->results_behind() : 0));
  meter_->add_step(watch.seconds());
  return ending;
}

Status Training::quantize() {
  if (!api::trains_quantized(task_.config.training) || learner_->network().quantizes()) {
    return success();
  }
  if (state_.position.epoch < api::quantized_from(task_.config.training)) return success();
  if (collective_.rank() == 0) hooks_.log("trains on the grids of 8-bit integers from here on");
  return begin_quantized_training(parts(), step_.dealing.limit);
}

Result<Training::StepEnding> Training::prune() {
  FETTLE_ASSIGN(const StepEnding ending, settle_steps(0));
  if (ending != StepEnding::kContinues) return ending;
  const Span span(&trace_, "prune");
  FETTLE_TRY(pruner_->before_step(step_number()));
  return ending;
}

Result<Training::StepEnding> Training::settle_steps(std::int64_t behind) {
  WorkerRequests requests;
  while (const std::optional<Learner::Step> step = learner_->settle(behind)) {
    if (step->lost) {  // the step is undone, so the next training begins with it
      state_.position.offset = begun_at_.front();
      while (learner_->settle()) {  // later steps are undone, too
      }
      return learner_->health().error();
    }
    begun_at_.pop_front();
    ++steps_;
    // The training ends here: results of later steps do not matter.
    if (!step->finite) return StepEnding::kDiverged;
    if (std::isfinite(step->score.loss)) {  // a skipped step may have no finite loss
      state_.sums.loss += step->score.loss;
      state_.sums.samples += step->score.samples;
    }
    meter_->add_predictions(step->score.samples);
    requests = {requests.stop || step->requests.stop, requests.regroup || step->requests.regroup};
    // All enqueued steps are settled before the workers stop or regroup.
    if (requests.stop || requests.regroup) behind = 0;
  }
  if (requests.stop) return StepEnding::kStops;
  return requests.regroup ? StepEnding::kRegroups : StepEnding::kContinues;
}

// Skipped steps do not count: the schedule follows updates.
Learner::LearningRates Training::learning_rates() const {
  std::int64_t number = step_number() - learner_->optimizer().control().loss_scale.skipped_steps;
  Learner::LearningRates rates;
  // First the rate if no further steps were skipped, then the rate if one more was, ...
  for (double& rate : rates) rate = rates_.at(std::max<std::int64_t>(0, number--));
  return rates;
}

WorkerRequests Training::own_requests() const {
  return {hooks_.should_stop(), hooks_.should_regroup && hooks_.should_regroup()};
}

Result<WorkerRequests> Training::all_requests() {
  const WorkerRequests own = own_requests();
  std::array<double, 2> sums = {own.stop ? 1.0 : 0.0, own.regroup ? 1.0 : 0.0};
  FETTLE_TRY(collective_.sum(std::span<double>(sums)));
  return WorkerRequests{sums[0] > 0, sums[1] > 0};
}

Status Training::check_data() {
  Status unchanged = check_unchanged(data_, files_);
  double changed = unchanged.ok() ? 0 : 1;
  FETTLE_TRY(collective_.sum(std::span(&changed, 1)));
  // The sum tells every worker, so all end here; a worker whose own data changed says how.
  if (!unchanged.ok() || changed == 0) return unchanged;
  return io_error("the data of another worker changed while it was trained on; its log says how");
}

Status Training::finish_epoch(Loader& loader, double seconds) {
  const Metrics speed = meter_->measure(loader, rates_, state_.position.epoch, seconds);
  state_.position = {state_.position.epoch + 1, 0};
  state_.sums = {};
  if (state_.position.epoch == rates_.length().epochs && data_.test) {
    Indices all(static_cast<std::size_t>(data_.test->size()));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    FETTLE_ASSIGN(const Score score, learner_->evaluate(*data_.test, all, evaluation_writer_));
    state_.scores.emplace_back(metric::kTestLoss, score.mean_loss());
    state_.scores.emplace_back(metric::kTestAccuracy, score.accuracy());
  }
  FETTLE_TRY(add_int8_scores());
  Metrics metrics = results();
  append(metrics, speed);
  return reports_->save_and_report(state_, metrics, is_final());
}

Status Training::add_int8_scores() {
  state_.int8_ranges.clear();
  if (!task_.config.training.quantize || !ends_or_waits()) return success();
  FETTLE_ASSIGN(Int8Result found, measure_int8(parts(), step_.dealing.limit));
  append(state_.scores, found.metrics);
  state_.int8_ranges = std::move(found.ranges);
  return success();
}

bool Training::ends_or_waits() const {
  return is_final() || std::ranges::binary_search(task_.keep.rungs, state_.position.epoch);
}

Metrics Training::results() {
  Metrics metrics = state_.scores;
  if (collective_.rank() != 0) return metrics;  // does not report
  append(metrics, model_metrics(learner_->network().plan()));
  if (pruner_) append(metrics, pruner_->metrics());
  if (ends_or_waits()) {
    metrics.emplace_back(metric::kInferenceMs,
                         measure_inference_ms(learner_->runner(), data_.images,
                                              data_.split.validation, evaluation_writer_));
  }
  return metrics;
}

Ending Training::end_diverged(const std::string& what) {
  reports_->report_divergence(state_, what, pruner_ ? pruner_->metrics() : Metrics());
  return Ending::kDiverged;
}

}  // namespace fettle::trainer
