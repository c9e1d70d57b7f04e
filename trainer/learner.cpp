#include "trainer/learner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "api/names.h"
#include "api/trainer_fields.h"
#include "trainer/batching.h"
#include "trainer/open_backend.h"
#include "trainer/optimizer_shards.h"

namespace fettle::trainer {

namespace {

Learner::Step step_of(const kernels::StepControl& control) {
  Learner::Step step;
  step.score.loss = static_cast<double>(control.sums.loss);
  step.score.correct = static_cast<std::int64_t>(control.sums.correct);
  step.score.samples = static_cast<std::int64_t>(control.sums.samples);
  step.skipped = control.skipped != 0;
  step.finite = control.apply != 0 || step.skipped;
  step.lost = control.lost != 0;
  step.requests = {control.sums.stop > 0, control.sums.regroup > 0};
  return step;
}

// What StepSums relies on; of images a batch is never larger.
Status check_predictions(std::int64_t batch, std::int64_t predictions) {
  if (batch <= api::kLargestBatch / predictions) return success();
  return invalid("a batch of " + std::to_string(batch) + " samples of " +
                 std::to_string(predictions) + " tokens has more than " +
                 std::to_string(api::kLargestBatch) +
                 " tokens; use a smaller globalBatch or data.context");
}

}  // namespace

kernels::DataType data_type(api::Precision precision) {
  switch (precision) {
    case api::Precision::kBf16:
      return kernels::DataType::kBFloat16;
    case api::Precision::kFp16:
      return kernels::DataType::kFloat16;
    default:
      return kernels::DataType::kFloat32;
  }
}

Learner::Learner(const api::TrainingConfig& config, std::uint64_t seed, Collective& collective)
    : config_(config), seed_(seed), collective_(collective) {}

Result<std::unique_ptr<Learner>> Learner::create(const api::TrainingConfig& config,
                                                 const NetworkPlan& plan, std::int64_t max_samples,
                                                 std::uint64_t seed, Collective& collective) {
  FETTLE_ASSIGN(auto backend, open_backend(config));
  return create_on(std::move(backend), config, plan, max_samples, seed, collective);
}

Result<std::unique_ptr<Learner>> Learner::create_on(std::unique_ptr<kernels::Backend> opened,
                                                    const api::TrainingConfig& config,
                                                    const NetworkPlan& plan,
                                                    std::int64_t max_samples, std::uint64_t seed,
                                                    Collective& collective,
                                                    const std::optional<HeldSamples>& held) {
  const std::int64_t batch = global_batch_of(config, collective.world_size());
  FETTLE_TRY(check_predictions(batch, plan.predictions()));
  std::unique_ptr<Learner> learner(new Learner(config, seed, collective));
  learner->backend_ = std::move(opened);
  kernels::Backend& backend = *learner->backend_;
  const kernels::DataType type = data_type(config.precision);
  FETTLE_ASSIGN(learner->network_,
                Network::create(plan, backend, {max_samples, type}, seed, config.recompute));
  learner->loss_ = backend.softmax_cross_entropy(plan.classes, type);
  Parameters& parameters = learner->network_->parameters();
  std::optional<Range> shard;
  if (config.shard_optimizer.value_or(false) && collective.world_size() > 1) {
    learner->shard_bounds_ = shard_bounds(plan, config.optimizer, collective.world_size());
    const auto rank = static_cast<std::size_t>(collective.rank());
    shard = {learner->shard_bounds_[rank], learner->shard_bounds_[rank + 1]};
  }
  DeviceCollective* const gpus = backend.shares_memory() ? nullptr : collective.on_device();
  FETTLE_ASSIGN(learner->optimizer_,
                Optimizer::create(config, plan, batch * plan.predictions(), backend, parameters,
                                  shard, gpus == nullptr ? nullptr : gpus->given_up()));
  learner->plan_sums(plan, gpus);
  FETTLE_TRY(learner->allocate(plan, max_samples, held));
  learner->keep_statistics();
  return learner;
}

Status Learner::allocate(const NetworkPlan& plan, std::int64_t max_samples,
                         const std::optional<HeldSamples>& held) {
  using Sums = kernels::DeviceArray<kernels::LossSums>;
  const kernels::DataType type = data_type(config_.precision);
  const std::int64_t bytes =
      plan.tokens ? std::int64_t{sizeof(std::int32_t)} : kernels::size_of(type);
  FETTLE_ASSIGN(
      stage_,
      BatchStaging::create(
          *backend_, {max_samples, plan.input.size() * bytes, plan.predictions(), type}, held));
  FETTLE_ASSIGN(sums_, Sums::create(*backend_, 1));
  FETTLE_ASSIGN(evaluation_sums_, Sums::create(*backend_, 1));
  FETTLE_ASSIGN(statistics_before_,
                kernels::DeviceArray<float>::create(*backend_, plan.statistics));
  return success();
}

void Learner::plan_sums(const NetworkPlan& plan, DeviceCollective* gpus) {
  const std::int64_t gradients = network_->parameters().gradients.size();
  gpus_ = gpus;
  if (gpus_ != nullptr) {
    gradient_all_reduce_.emplace(*gpus_, *backend_,
                                 plan_messages(plan, gradients, gpus_->least_message()));
  } else {
    gradient_sum_.emplace(collective_, plan_messages(plan, gradients));
  }
}

void Learner::set_trace(Trace* trace) {
  trace_ = trace;
  traced_.reset();  // before it is another's
  if (trace != nullptr) traced_.emplace(*trace, *backend_);
  network_->set_trace(trace);
}

void Learner::weights_changed() {
  network_->parameters().round_weights(*backend_);
  network_->weights_changed();
  keep_statistics();
}

void Learner::keep_statistics() {
  backend_->copy(network_->parameters().statistics.data(), statistics_before_.data(),
                 statistics_before_.bytes());
}

void Learner::add(const Batch& batch, std::int64_t epoch, bool last_of_step) {
  if (batch.size() == 0) return;
  const Span span(trace_, "micro-batch");
  const double waited = stage_->waited();
  const StagedBatch staged = stage_->bring(batch, epoch);
  waited_for_data_ += stage_->waited() - waited;
  if (backend_->shares_memory() && last_of_step && collective_.world_size() > 1) {
    return enqueue_batch(staged, [this](std::int64_t layer) {
      gradient_sum_->layer_done(layer, network_->parameters().all_gradients());
    });
  }
  run_batch(staged);
  if (gradient_all_reduce_ && last_of_step) {
    gradient_all_reduce_->pass_enqueued(network_->parameters().all_gradients());
  }
}

void Learner::run_batch(const StagedBatch& staged) {
  Network::LayerDone layer_done;
  if (gradient_all_reduce_) {
    layer_done = [this](std::int64_t layer) { gradient_all_reduce_->layer_done(layer); };
  }
  // A part of a graph has no time of its own.
  const bool traced = trace_ != nullptr && trace_->is_on();
  if (!stage_->is_fixed() || traced) return enqueue_batch(staged, layer_done);
  batch_graphs_[staged].run(*backend_, [=, this] { enqueue_batch(staged, layer_done); });
}

void Learner::enqueue_batch(const StagedBatch& batch, const Network::LayerDone& layer_done) {
  Parameters& parameters = network_->parameters();
  if (batch.gather != nullptr) {
    const Span span(trace_, "gather");
    stage_->gather(batch);
  }
  // Every micro-batch of a step starts from the same statistics.
  backend_->copy(statistics_before_.data(), parameters.statistics.data(),
                 statistics_before_.bytes());
  const Pass pass{true, batch.samples, seed_, batch.epoch, batch.indices};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels);
  const kernels::LossOptions options{static_cast<float>(config_.label_smoothing),
                                     scales_loss() ? optimizer_->gradient_scale() : nullptr};
  {
    const Span span(trace_, "loss");
    loss_->run(batch.predictions, logits, batch.labels, options, sums_.data(),
               network_->logits_gradient());
  }
  network_->backward(pass, batch.pixels, layer_done);
  if (gradient_all_reduce_) gradient_all_reduce_->pass_done();
  backend_->add_scaled(parameters.statistics.size(), static_cast<float>(batch.predictions),
                       parameters.statistics.data(), parameters.statistic_sums());
}

Status Learner::finish_step(const LearningRates& rates, const WorkerRequests& requests) {
  kernels::StepInput input;
  std::ranges::transform(rates, input.learning_rates,
                         [](double rate) { return static_cast<float>(rate); });
  input.stop = requests.stop ? 1.0F : 0.0F;
  input.regroup = requests.regroup ? 1.0F : 0.0F;
  input.known_skips = optimizer_->control().loss_scale.skipped_steps;
  optimizer_->set_input(input);
  backend_->add_step_sums(sums_.data(), &optimizer_->device_control()->input,
                          network_->parameters().step_sums());
  if (Status summed = sum_over_workers(); !summed.ok()) {
    undo_step();
    return summed.error();
  }
  run_end();
  if (shards_optimizer()) FETTLE_TRY(gather_weights());
  optimizer_->enqueue_result();
  ++unsettled_;
  return success();
}

std::optional<Learner::Step> Learner::settle(std::int64_t behind) {
  if (unsettled_ <= behind) return std::nullopt;
  --unsettled_;
  Step step = step_of(optimizer_->take_result());
  // A sharded optimiser's step may be complete, and its weights not be gathered.
  if (shards_optimizer() && !health().ok()) step.lost = true;
  return step;
}

Status Learner::health() { return gpus_ == nullptr ? success() : gpus_->health(); }

Status Learner::sum_over_workers() {
  if (collective_.world_size() == 1) return sum_gradients();  // nobody to wait for
  const Span span(trace_, "all-reduce");
  const auto begin = Trace::Clock::now();
  Status summed = sum_gradients();
  communicated_ += std::chrono::duration<double>(Trace::Clock::now() - begin).count();
  return summed;
}

// Where GPUs cannot all-reduce by themselves, the host does it for them.
Status Learner::sum_gradients() {
  Parameters& parameters = network_->parameters();
  if (gradient_all_reduce_) return gradient_all_reduce_->finish(parameters.all_gradients());
  if (backend_->shares_memory()) return gradient_sum_->finish(parameters.all_gradients());
  if (collective_.world_size() == 1) return success();
  std::vector<float> gradients = parameters.gradients.download();
  FETTLE_TRY(gradient_sum_->finish(gradients));
  parameters.gradients.upload(gradients);
  return success();
}

// Also where the step was not applied: then all bring what they had, and nobody need ask.
Status Learner::gather_weights() {
  const Span span(trace_, "all-gather");
  Parameters& parameters = network_->parameters();
  const auto begin = Trace::Clock::now();
  if (gradient_all_reduce_) {
    FETTLE_TRY(gradient_all_reduce_->gather(parameters.all_weights(), shard_bounds_));
  } else if (backend_->shares_memory()) {
    FETTLE_TRY(collective_.all_gather(parameters.all_weights(), shard_bounds_));
  } else {
    std::vector<float> weights = parameters.weights.download();
    FETTLE_TRY(collective_.all_gather(weights, shard_bounds_));
    parameters.weights.upload(weights);
  }
  communicated_ += std::chrono::duration<double>(Trace::Clock::now() - begin).count();
  parameters.round_weights(*backend_);
  network_->weights_changed();
  return success();
}

Result<OptimizerState> Learner::optimizer_state() {
  OptimizerState state;
  if (!shards_optimizer()) {
    if (collective_.rank() > 0) return state;
    return OptimizerState{optimizer_->state1.download(), optimizer_->state2.download()};
  }
  const OptimizerStates states = states_of(config_);
  if (states.first) {
    FETTLE_ASSIGN(state.first,
                  gather_shards(collective_, optimizer_->state1.download(), shard_bounds_));
  }
  if (states.second) {
    FETTLE_ASSIGN(state.second,
                  gather_shards(collective_, optimizer_->state2.download(), shard_bounds_));
  }
  return state;
}

void Learner::run_end() {
  const Span span(trace_, "update");
  if (backend_->shares_memory()) return enqueue_end();
  end_graph_.run(*backend_, [this] { enqueue_end(); });
}

void Learner::enqueue_end() {
  Parameters& parameters = network_->parameters();
  optimizer_->enqueue_update();
  backend_->end_statistics(parameters.statistics.size(), optimizer_->device_control(),
                           statistics_before_.data(), parameters.statistic_sums(),
                           parameters.statistics.data());
  keep_statistics();
  parameters.gradients.set_zero();
  if (!shards_optimizer()) network_->weights_changed();
}

void Learner::undo_step() {
  Parameters& parameters = network_->parameters();
  parameters.gradients.set_zero();
  backend_->copy(statistics_before_.data(), parameters.statistics.data(),
                 statistics_before_.bytes());
}

Result<Score> Learner::evaluate(const ImageSet& images, const Indices& samples,
                                const BatchWriter& writer) {
  const Span span(trace_, "evaluation", "", /*always=*/true);
  const Range share =
      share_of({0, std::ssize(samples)}, collective_.world_size(), collective_.rank());
  const std::span<const std::int64_t> all(samples);
  evaluation_sums_.set_zero();
  enqueue_evaluation(
      images,
      all.subspan(static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.size())),
      writer);
  const kernels::LossSums mine = evaluation_sums_.download()[0];
  std::array<double, 3> sums = {mine.loss, static_cast<double>(mine.correct),
                                static_cast<double>(mine.samples)};
  FETTLE_TRY(collective_.sum(std::span<double>(sums)));
  return Score{sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
}

StagedBatch Learner::stage_evaluation(const ImageSet& images, std::span<const std::int64_t> samples,
                                      const BatchWriter& writer) {
  if (stage_->holds(images, writer)) {
    const StagedBatch batch = stage_->bring(samples, writer, 0);
    stage_->gather(batch);
    return batch;
  }
  if (evaluated_.pixels.empty()) {
    evaluated_ = writer.make_batch(images, network_->max_samples());
  }
  writer.write(images, samples, 0, evaluated_);
  return stage_->bring(evaluated_, 0);
}

void Learner::enqueue_evaluation(const ImageSet& images, std::span<const std::int64_t> left,
                                 const BatchWriter& writer) {
  while (!left.empty()) {
    const auto size = std::min(left.size(), static_cast<std::size_t>(network_->max_samples()));
    const StagedBatch batch = stage_evaluation(images, left.first(size), writer);
    left = left.subspan(size);
    const Pass pass{false, batch.samples};
    const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels);
    loss_->run(batch.predictions, logits, batch.labels, {}, evaluation_sums_.data(), nullptr);
  }
}

}  // namespace fettle::trainer
