#include "trainer/training.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "api/metric_names.h"
#include "api/names.h"
#include "api/resolve.h"
#include "trainer/data/batching.h"
#include "trainer/model/model_flops.h"
#include "trainer/norm_samples.h"
#include "trainer/rank0_work.h"
#include "trainer/step/device_metrics.h"
#include "trainer/step/precision.h"
#include "trainer/step/training_device.h"

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

// The learning rate for the configured global batch, before the schedule.
double base_rate_of(const api::TrainingConfig& config, std::int64_t global_batch) {
  return config.learning_rate * learning_rate_scale(config.learning_rate_scaling, config.optimizer,
                                                    static_cast<double>(global_batch),
                                                    static_cast<double>(*config.reference_batch));
}

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

}  // namespace

Training::Training(const TrainingTask& task, const TrainingData& data, Collective& collective,
                   TrainingHooks hooks)
    : task_(with_defaults(task)),
      data_(data),
      collective_(collective),
      hooks_(std::move(hooks)),
      nowhere_(collective.rank(), /*steps=*/0),
      trace_(hooks_.trace != nullptr ? *hooks_.trace : nowhere_),
      epochs_(*task_.config.training.epochs),
      step_(plan_step(task_.config, world_of(data, collective.world_size()))),
      base_rate_(base_rate_of(task_.config.training, step_.configured_batch)),
      length_{steps_per_epoch(std::ssize(data.split.train), step_.global_batch), epochs_},
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
  std::unique_ptr<Training> training(new Training(task, data, collective, std::move(hooks)));
  if (task.until_epoch > training->epochs_) {
    return invalid("the trial is to run until epoch " + std::to_string(task.until_epoch) +
                   ", but training.epochs is " + std::to_string(training->epochs_));
  }
  FETTLE_TRY(training->agree_on_data());
  FETTLE_TRY(training->make_learner(device));
  FETTLE_TRY(training->agree_with_others());
  FETTLE_TRY(training->restore(from));
  return training;
}

Status Training::make_learner(TrainingDevice& device) {
  const api::TrainerConfig& config = task_.config;
  FETTLE_ASSIGN(const NetworkPlan plan, plan_network(config, data_.format()));
  const TrainingWorld world =
      world_of(data_, collective_.world_size(), collective_.rank() == 0 && store_.keeps_any());
  FETTLE_TRY(check_norm_samples(config, plan, world));
  MemoryThere there = memory_there(device.backend(), task_.processes_here);
  // Memory that the previous training left there is reused or released.
  if (there.device) *there.device += device.kept_bytes();
  FETTLE_ASSIGN(
      const Workspaces workspaces,
      device.workspace(plan, plan_options(device.backend(), config.training, step_.dealing.limit)));
  place_ = place_data(config, plan, world, there, workspaces);
  const MemoryPlan memory = plan_memory(config, plan, world, place_, workspaces);
  FETTLE_TRY(check_memory(config, memory, there));
  if (memory.has_device()) planned_gpu_bytes_ = memory.total();
  std::optional<HeldSamples> held;
  if (place_ == DataPlace::kHeld) {
    held = HeldSamples{&data_.images, &train_writer_, &evaluation_writer_};
  } else {
    device.release_samples();
  }
  FETTLE_ASSIGN(learner_, Learner::create_on(device, config.training, plan, step_, task_.seed,
                                             collective_, held));
  learner_->set_trace(&trace_);
  if (device.reused_network()) hooks_.log("keeps its network, with its plans and memory");
  if (collective_.rank() == 0) {
    gpu_meter_ = machine::GpuMeter::open(learner_->backend().device().uuid);
  }
  return success();
}

Status Training::agree_with_others() {
  const auto workers = static_cast<double>(collective_.world_size());
  const bool keeps = collective_.rank() == 0 && store_.keeps_any();
  std::array<double, 2> sums = {learner_->shards_optimizer() ? 1.0 : 0.0, keeps ? 1.0 : 0.0};
  FETTLE_TRY(collective_.sum(std::span<double>(sums)));
  keeps_checkpoints_ = sums[1] > 0;
  if (sums[0] == 0 || sums[0] == workers) return success();
  return invalid("training.shardOptimizer is true for " +
                 std::to_string(static_cast<std::int64_t>(sums[0])) + " of " +
                 std::to_string(collective_.world_size()) + " workers; expected all or none");
}

// ---- The loop ----------------------------------------------------------------------------------

Result<Ending> Training::run() {
  if (collective_.rank() == 0) hooks_.log(describe());
  if (is_final()) {
    // An earlier run ended between its last checkpoint and its last report: report now.
    FETTLE_TRY(save_and_report(scores_, true));
    return Ending::kReached;
  }
  report_start();
  const LoaderSettings settings{.seed = task_.seed,
                                .epochs = task_.until_epoch,
                                .global_batch = step_.global_batch,
                                .world_size = collective_.world_size(),
                                .rank = collective_.rank(),
                                .max_samples = step_.dealing.limit,
                                .norm_group = step_.dealing.norm_group,
                                .deals_only = place_ == DataPlace::kHeld};
  Loader loader(data_.images, data_.split.train, train_writer_, settings, position_);
  while (!is_final()) {
    const Stopwatch watch;
    FETTLE_ASSIGN(const std::optional<Ending> ended, run_steps_of_epoch(loader));
    if (ended) return *ended;
    FETTLE_ASSIGN(const Score score,
                  learner_->evaluate(data_.images, data_.split.validation, evaluation_writer_));
    FETTLE_TRY(check_data());  // before anything of this epoch is saved
    if (!std::isfinite(score.loss)) return end_diverged("the validation loss is not finite");
    scores_ = {{metric::kLoss, sums_.loss / static_cast<double>(sums_.samples)},
               {metric::kValidationLoss, score.mean_loss()},
               {metric::kValidationAccuracy, score.accuracy()}};
    add_text_scores(score);
    FETTLE_TRY(finish_epoch(loader, watch.seconds()));
    if (is_final()) break;
    FETTLE_ASSIGN(const WorkerRequests requests, all_requests());
    if (requests.stop) return Ending::kStopped;
    if (requests.regroup) return Ending::kRegroups;
  }
  return Ending::kReached;
}

Result<std::optional<Ending>> Training::run_steps_of_epoch(Loader& loader) {
  times_ = {};
  predictions_ = 0;
  waited_ = waited_for_data(loader);
  communicated_ = learner_->communicated();
  while (position_.offset < std::ssize(data_.split.train)) {
    FETTLE_ASSIGN(const StepEnding ending, run_step(loader));
    if (ending == StepEnding::kDiverged) return std::optional(end_diverged(what_diverged()));
    if (ending == StepEnding::kRegroups) return std::optional(Ending::kRegroups);
    if (ending == StepEnding::kStops) {
      FETTLE_ASSIGN(const Ending stopped, stop_within_epoch());
      return std::optional(stopped);
    }
  }
  return std::optional<Ending>();
}

const LoadedBatch& Training::next_batch(Loader& loader) {
  const Span span(&trace_, "data wait");
  return loader.next();
}

Result<Training::StepEnding> Training::run_step(Loader& loader) {
  trace_.begin_step();
  const Span span(&trace_, "step");
  const Stopwatch watch;
  Range global;
  bool asks = false;  // whether the step carries this worker's requests
  WorkerRequests requests;
  for (bool last = false; !last;) {
    const LoadedBatch& loaded = next_batch(loader);
    global = loaded.global;
    last = loaded.last_of_step;
    // After the last step of an epoch the requests are asked once the epoch is validated and
    // reported.
    asks = last && global.end < std::ssize(data_.split.train);
    if (asks) requests = own_requests();  // before the workers' connections are in use
    learner_->add(loaded.batch, position_.epoch, last);
  }
  if (Status finished = learner_->finish_step(learning_rates(), requests); !finished.ok()) {
    (void)settle_steps(0);  // takes the results of earlier steps; the others resume there
    return finished.error();
  }
  begun_at_.push_back(position_.offset);
  position_.offset = global.end;
  // The last step of an epoch leaves no step unsettled: the report needs all results.
  FETTLE_ASSIGN(const StepEnding ending, settle_steps(asks ? learner_->results_behind() : 0));
  times_.add(watch.seconds());
  return ending;
}

Result<Training::StepEnding> Training::settle_steps(std::int64_t behind) {
  WorkerRequests requests;
  while (const std::optional<Learner::Step> step = learner_->settle(behind)) {
    if (step->lost) {  // the step is undone, so the next training begins with it
      position_.offset = begun_at_.front();
      while (learner_->settle()) {  // later steps are undone, too
      }
      return learner_->health().error();
    }
    begun_at_.pop_front();
    ++steps_;
    // The training ends here: results of later steps do not matter.
    if (!step->finite) return StepEnding::kDiverged;
    if (std::isfinite(step->score.loss)) {  // a skipped step may have no finite loss
      sums_.loss += step->score.loss;
      sums_.samples += step->score.samples;
    }
    predictions_ += step->score.samples;
    requests = {requests.stop || step->requests.stop, requests.regroup || step->requests.regroup};
    // All enqueued steps are settled before the workers stop or regroup.
    if (requests.stop || requests.regroup) behind = 0;
  }
  if (requests.stop) return StepEnding::kStops;
  return requests.regroup ? StepEnding::kRegroups : StepEnding::kContinues;
}

// Skipped steps do not count: the schedule follows updates.
Learner::LearningRates Training::learning_rates() const {
  std::int64_t number = position_.epoch * length_.steps_per_epoch +
                        position_.offset / step_.global_batch -
                        learner_->optimizer().control().loss_scale.skipped_steps;
  Learner::LearningRates rates;
  // First the rate if no further steps were skipped, then the rate if one more was, ...
  for (double& rate : rates) rate = learning_rate(std::max<std::int64_t>(0, number--));
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
  if (!unchanged.ok() || changed == 0) return unchanged;
  return io_error("the data of another worker changed while it was trained on; its log says how");
}

void Training::add_text_scores(const Score& score) {
  if (!is_text(task_.config.data)) return;
  scores_.emplace_back(metric::kValidationPerplexity, std::exp(score.mean_loss()));
  if (task_.config.data.format == "text") {
    scores_.emplace_back(metric::kValidationBits, score.mean_loss() / std::numbers::ln2);
  }
}

Status Training::finish_epoch(Loader& loader, double seconds) {
  const Metrics speed = measure_epoch(loader, seconds);
  position_ = {position_.epoch + 1, 0};
  sums_ = {};
  if (position_.epoch == epochs_ && data_.test) {
    Indices all(static_cast<std::size_t>(data_.test->size()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    FETTLE_ASSIGN(const Score score, learner_->evaluate(*data_.test, all, evaluation_writer_));
    scores_.emplace_back(metric::kTestLoss, score.mean_loss());
    scores_.emplace_back(metric::kTestAccuracy, score.accuracy());
  }
  Metrics metrics = scores_;
  metrics.insert(metrics.end(), speed.begin(), speed.end());
  return save_and_report(metrics, is_final());
}

Ending Training::end_diverged(const std::string& what) {
  if (collective_.rank() != 0) return Ending::kDiverged;
  hooks_.log(what + " in epoch " + std::to_string(position_.epoch + 1) +
             ": this configuration diverges; its result is NaN");
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  EpochReport report;
  report.step = task_.until_epoch;  // further training would not change the result
  report.metrics = {{metric::kValidationAccuracy, kNaN},
                    {metric::kValidationLoss, kNaN},
                    {metric::kLoss, kNaN},
                    {metric::kDivergedEpoch, static_cast<double>(position_.epoch + 1)}};
  report.final_result = true;
  report.implementations = implementations_once();
  hooks_.report(report);
  return Ending::kDiverged;
}

std::string Training::what_diverged() const {
  if (!scales_loss(task_.config.training)) return "the loss is not finite";
  return "fp16 overflows even at the smallest loss scale (numbers this large need bf16 or fp32)";
}

Result<Ending> Training::stop_within_epoch() {
  FETTLE_TRY(save_and_report({}, false));
  return Ending::kStopped;
}

// ---- Reports -----------------------------------------------------------------------------------

double Training::learning_rate(std::int64_t step) const {
  return base_rate_ * schedule_factor(task_.config.training.schedule, length_, step);
}

double Training::waited_for_data(const Loader& loader) const {
  return loader.waited() + learner_->waited_for_data();
}

api::Precision Training::precision() const {
  return precision_on(learner_->backend(), task_.config.training.precision);
}

std::string Training::describe() {
  return std::to_string(learner_->network().plan().trained()) + " parameters, " +
         std::to_string(data_.split.train.size()) + " training and " +
         std::to_string(data_.split.validation.size()) + " validation samples (" +
         describe_samples(data_) + "), backend " + std::string(learner_->backend().name()) + ", " +
         std::string(api::to_string(precision())) + ", data " + std::string(to_string(place_)) +
         ", until epoch " + std::to_string(task_.until_epoch);
}

Metrics Training::measure_epoch(const Loader& loader, double seconds) {
  const double busy = std::max(times_.total(), 1e-9);  // seconds in steps; never 0: a divisor
  const NetworkPlan& plan = learner_->network().plan();
  // A sample of text has many predictions.
  const double flops = model_flops(plan) * static_cast<double>(predictions_) /
                       static_cast<double>(plan.predictions());
  const std::int64_t world_size = collective_.world_size();
  const kernels::LossScale& scaler = learner_->optimizer().control().loss_scale;
  // As the schedule counts: optimiser steps of the training, without skipped ones.
  const std::int64_t last_step =
      (position_.epoch + 1) * length_.steps_per_epoch - 1 - scaler.skipped_steps;
  Metrics metrics = {
      {plan.tokens ? metric::kTokens : metric::kImages, static_cast<double>(predictions_) / busy},
      {metric::kStepMedian, 1e3 * times_.quantile(0.5)},
      {metric::kStepP95, 1e3 * times_.quantile(0.95)},
      {metric::kStepP99, 1e3 * times_.quantile(0.99)},
      {metric::kDataWait, (waited_for_data(loader) - waited_) / busy},
      {metric::kMemory, peak_memory_mib()},
      {metric::kOptimizer, learner_->optimizer().state_mib()},
      {metric::kLearningRate, learning_rate(last_step)},
      {metric::kGlobalBatch, static_cast<double>(step_.global_batch)},
      {metric::kWorldSize, static_cast<double>(world_size)},
      {metric::kAccumulation, static_cast<double>(step_.accumulation)},
      {metric::kSeconds, seconds},
  };
  append(metrics,
         compute_metrics(flops, busy, peak_flops_of(learner_->backend().device(), precision()),
                         world_size));
  if (planned_gpu_bytes_) {
    metrics.emplace_back(metric::kGpuMemoryPlanned, static_cast<double>(*planned_gpu_bytes_));
  }
  if (const auto& all = learner_->network().implementations(); !all.empty()) {
    metrics.emplace_back(metric::kFallbacks, static_cast<double>(fallbacks(all)));
  }
  if (gpu_meter_) append(metrics, gpu_metrics(gpu_meter_->take()));
  if (world_size > 1) {
    metrics.emplace_back(metric::kCommunicationShare,
                         (learner_->communicated() - communicated_) / busy);
  }
  if (scales_loss(task_.config.training)) {
    metrics.emplace_back(metric::kLossScale, scaler.scale);
    metrics.emplace_back(metric::kSkippedSteps, static_cast<double>(scaler.skipped_steps));
  }
  return metrics;
}

Json Training::implementations_once() {
  const auto& all = learner_->network().implementations();
  if (all.empty() || std::exchange(said_implementations_, true)) return {};
  return to_json(all);
}

// Nothing is downloaded or gathered if no checkpoints are kept.
Result<std::string> Training::save_checkpoint() {
  if (!keeps_checkpoints_) return std::string();
  const Span span(&trace_, "checkpoint", "", /*always=*/true);
  FETTLE_ASSIGN(const Checkpoint reached, snapshot());
  Result<std::string> saved = std::string();
  // If a worker is lost meanwhile, the next collective fails: the saved checkpoint is reported
  // first.
  (void)do_at_rank0(collective_, {.what = "writes a checkpoint",
                                  .work = [&] { saved = store_.save(reached); },
                                  .log = hooks_.log});
  return saved;
}

// An earlier run may have ended between the checkpoint of an epoch and its report.
void Training::report_start() {
  if (collective_.rank() != 0) return;
  const bool whole_epoch = position_.offset == 0 && position_.epoch > 0;
  if (whole_epoch && !resumed_from_.empty() && task_.new_process) {
    EpochReport report;
    report.step = report.checkpoint_step = position_.epoch;
    report.metrics = scores_;
    report.checkpoint = resumed_from_;
    hooks_.report(report);
  }
  if (hooks_.begin) hooks_.begin(position_.epoch);
}

Status Training::save_and_report(const Metrics& metrics, bool final_result) {
  FETTLE_ASSIGN(const std::string saved, save_checkpoint());
  if (collective_.rank() != 0) return success();
  EpochReport report;
  report.step = position_.epoch;  // a trial counts whole epochs as its steps
  report.metrics = metrics;
  report.final_result = final_result;
  report.checkpoint = saved;
  report.checkpoint_step = position_.epoch;
  report.implementations = implementations_once();
  hooks_.report(report);
  return success();
}

}  // namespace fettle::trainer
