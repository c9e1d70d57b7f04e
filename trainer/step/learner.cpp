#include "trainer/step/learner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "api/enum_names.h"
#include "api/trainer_fields.h"
#include "trainer/step/open_backend.h"
#include "trainer/step/optimizer_shards.h"
#include "trainer/step/precision.h"

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

// StepSums relies on this limit; a batch of images never exceeds it.
Status check_predictions(std::int64_t batch, std::int64_t predictions) {
  if (batch <= api::kLargestBatch / predictions) return success();
  return invalid("a batch of " + std::to_string(batch) + " samples of " +
                 std::to_string(predictions) + " tokens has more than " +
                 std::to_string(api::kLargestBatch) +
                 " tokens; use a smaller globalBatch or data.context");
}

}  // namespace

// ---- Creation ----------------------------------------------------------------------------------

Learner::Learner(TrainingDevice& device, const api::TrainingConfig& config, std::uint64_t seed,
                 Collective& collective)
    : device_(device),
      backend_(device.backend()),
      config_(config),
      seed_(seed),
      collective_(collective) {}

Result<std::unique_ptr<Learner>> Learner::create(const api::TrainingConfig& config,
                                                 const NetworkPlan& plan, const StepShape& step,
                                                 std::uint64_t seed, Collective& collective) {
  FETTLE_ASSIGN(auto backend, open_backend(config));
  return create_on(std::move(backend), config, plan, step, seed, collective);
}

Result<std::unique_ptr<Learner>> Learner::create_on(std::unique_ptr<kernels::Backend> backend,
                                                    const api::TrainingConfig& config,
                                                    const NetworkPlan& plan, const StepShape& step,
                                                    std::uint64_t seed, Collective& collective,
                                                    const std::optional<HeldSamples>& held) {
  auto device = std::make_unique<TrainingDevice>(std::move(backend));
  FETTLE_ASSIGN(auto learner, create_on(*device, config, plan, step, seed, collective, held));
  learner->own_device_ = std::move(device);
  return learner;
}

Result<std::unique_ptr<Learner>> Learner::create_on(TrainingDevice& device,
                                                    const api::TrainingConfig& config,
                                                    const NetworkPlan& plan, const StepShape& step,
                                                    std::uint64_t seed, Collective& collective,
                                                    const std::optional<HeldSamples>& held) {
  std::unique_ptr<Learner> learner(new Learner(device, config, seed, collective));
  FETTLE_TRY(learner->prepare(plan, step, held));
  return learner;
}

Status Learner::prepare(const NetworkPlan& plan, const StepShape& step,
                        const std::optional<HeldSamples>& held) {
  const std::int64_t batch = step.configured_batch;
  FETTLE_TRY(check_predictions(batch, plan.predictions()));
  if (config_.shard_optimizer.value_or(false) && collective_.world_size() > 1) plan_shards(plan);
  gpus_ = backend_.shares_memory() ? nullptr : collective_.on_device();
  const kernels::PlanOptions options = plan_options(backend_, config_, step.dealing.limit);
  FETTLE_ASSIGN(network_, device_.network(plan, options, seed_, config_.recompute, shard()));
  loss_ = backend_.softmax_cross_entropy(plan.classes, options.type);
  // given_up(): the GPUs note there that an all-reduce was abandoned.
  FETTLE_ASSIGN(optimizer_, Optimizer::create(config_, plan, batch * plan.predictions(), backend_,
                                              network_->parameters(), shard(),
                                              gpus_ == nullptr ? nullptr : gpus_->given_up()));
  plan_sums(plan);
  FETTLE_TRY(allocate(plan, step, held));
  keep_statistics();  // the first step begins from these
  return success();
}

void Learner::plan_shards(const NetworkPlan& plan) {
  shard_bounds_ = shard_bounds(plan, config_.optimizer, collective_.world_size());
  for (const std::int64_t bound : shard_bounds_) {
    decayed_bounds_.push_back(std::min(bound, plan.decayed));
    other_bounds_.push_back(std::max(bound, plan.decayed) - plan.decayed);
  }
}

// The parameters that this worker updates; nullopt: all.
std::optional<Range> Learner::shard() const {
  if (!shards_optimizer()) return std::nullopt;
  const auto rank = static_cast<std::size_t>(collective_.rank());
  return Range{shard_bounds_[rank], shard_bounds_[rank + 1]};
}

Status Learner::allocate(const NetworkPlan& plan, const StepShape& step,
                         const std::optional<HeldSamples>& held) {
  using Sums = kernels::DeviceArray<kernels::LossSums>;
  const kernels::DataType type = data_type(config_.precision);
  const std::int64_t bytes =
      plan.tokens ? std::int64_t{sizeof(std::int32_t)} : kernels::size_of(type);
  const BatchStaging::Size size{step.dealing.limit, plan.input.size() * bytes, plan.predictions(),
                                type};
  FETTLE_ASSIGN(stage_, BatchStaging::create(device_, size, held));
  FETTLE_ASSIGN(sums_, Sums::create(backend_, 1));
  FETTLE_ASSIGN(evaluation_sums_, Sums::create(backend_, 1));
  FETTLE_ASSIGN(statistics_before_, kernels::DeviceArray<float>::create(backend_, plan.statistics));
  return success();
}

void Learner::plan_sums(const NetworkPlan& plan) {
  const std::int64_t gradients = network_->parameters().gradients.size();
  if (gpus_ != nullptr) {
    gradient_all_reduce_.emplace(*gpus_, backend_,
                                 plan_messages(plan, gradients, gpus_->least_message()));
  } else {
    gradient_sum_.emplace(collective_, plan_messages(plan, gradients));
  }
}

// ---- Steps -------------------------------------------------------------------------------------

void Learner::set_trace(Trace* trace) {
  trace_ = trace;
  traced_.reset();  // ends before the next begins
  if (trace != nullptr) traced_.emplace(*trace, backend_);
  network_->set_trace(trace);
}

void Learner::weights_changed() {
  network_->parameters().round_weights(backend_);
  network_->weights_changed();
  keep_statistics();
}

void Learner::keep_statistics() {
  backend_.copy(network_->parameters().statistics.data(), statistics_before_.data(),
                statistics_before_.bytes());
}

void Learner::add(const Batch& batch, std::int64_t epoch, bool last_of_step) {
  if (batch.size() == 0) return;  // finish_step() still sends this worker's zeros
  const Span span(trace_, "micro-batch");
  const double waited = stage_->waited();  // includes evaluation, which must not count here
  const StagedBatch staged = stage_->bring(batch, epoch);
  waited_for_data_ += stage_->waited() - waited;
  if (last_of_step && ends_in_one_graph()) {
    deferred_ = staged;  // finish_step() runs it, in one graph with the step's end
    return;
  }
  // On CPUs a layer's gradients are sent as soon as it is done, while this thread runs the next.
  if (backend_.shares_memory() && last_of_step && collective_.world_size() > 1) {
    return enqueue_batch(staged, [this](std::int64_t layer) {
      gradient_sum_->layer_done(layer, network_->parameters().all_gradients());
    });
  }
  run_batch(staged);
  if (gradient_all_reduce_ && last_of_step) {
    gradient_all_reduce_->pass_enqueued(network_->parameters().all_gradients());
  }
}

// Between GPUs the all-reduce comes in between; and parts of a graph cannot be timed by themselves.
bool Learner::ends_in_one_graph() const {
  return stage_->is_fixed() && collective_.world_size() == 1 && !is_traced();
}

void Learner::run_batch(const StagedBatch& staged) {
  Network::LayerDone layer_done;
  if (gradient_all_reduce_) {
    layer_done = [this](std::int64_t layer) { gradient_all_reduce_->layer_done(layer); };
  }
  if (!stage_->is_fixed() || is_traced()) return enqueue_batch(staged, layer_done);
  batch_graphs_[staged].run(backend_, [=, this] { enqueue_batch(staged, layer_done); });
}

void Learner::enqueue_batch(const StagedBatch& batch, const Network::LayerDone& layer_done,
                            bool ends_step) {
  Parameters& parameters = network_->parameters();
  if (batch.gather != nullptr) {
    const Span span(trace_, "gather");
    stage_->gather(batch);
  }
  // Every micro-batch of a step starts from the same statistics.
  backend_.copy(statistics_before_.data(), parameters.statistics.data(),
                statistics_before_.bytes());
  const Pass pass{/*training=*/true, batch.samples, seed_, batch.epoch, batch.indices};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels);
  kernels::LossOptions options{static_cast<float>(config_.label_smoothing),
                               scales_loss() ? optimizer_->gradient_scale() : nullptr};
  if (ends_step) {
    options.step_input = &optimizer_->device_control()->input;
    options.step_sums = parameters.step_sums();
  }
  {
    const Span span(trace_, "loss");
    loss_->run(batch.predictions, logits, batch.labels, options, sums_.data(),
               network_->logits_gradient());
  }
  network_->backward(pass, batch.pixels, layer_done);
  if (gradient_all_reduce_) gradient_all_reduce_->pass_done();
  // Weighted by predictions (of images: samples); end_statistics() divides by their number.
  backend_.add_scaled(parameters.statistics.size(), static_cast<float>(batch.predictions),
                      parameters.statistics.data(), parameters.statistic_sums());
}

Status Learner::finish_step(const LearningRates& rates, const WorkerRequests& requests) {
  kernels::StepInput input;
  std::ranges::transform(rates, input.learning_rates,
                         [](double rate) { return static_cast<float>(rate); });
  input.stop = requests.stop ? 1.0F : 0.0F;
  input.regroup = requests.regroup ? 1.0F : 0.0F;
  // By then the backend may know of more skips; the difference picks the rate.
  input.known_skips = optimizer_->control().loss_scale.skipped_steps;
  optimizer_->set_input(input);
  if (deferred_) {
    const Span span(trace_, "micro-batch and update");
    const StagedBatch last = *std::exchange(deferred_, std::nullopt);
    step_graphs_[last].run(backend_, [=, this] {
      enqueue_batch(last, {}, /*ends_step=*/true);
      enqueue_end();
    });
  } else {
    FETTLE_TRY(run_end_with_others());
  }
  optimizer_->enqueue_result();
  ++unsettled_;
  return success();
}

Status Learner::run_end_with_others() {
  enqueue_step_sums();
  if (Status summed = sum_over_workers(); !summed.ok()) {
    undo_step();
    return summed.error();
  }
  run_end();
  return shards_optimizer() ? gather_weights() : success();
}

void Learner::enqueue_step_sums() {
  backend_.add_step_sums(sums_.data(), &optimizer_->device_control()->input,
                         network_->parameters().step_sums());
}

std::optional<Learner::Step> Learner::settle(std::int64_t behind) {
  if (unsettled_ <= behind) return std::nullopt;
  --unsettled_;
  Step step = step_of(optimizer_->take_result());
  // The step of a sharded optimiser may be complete before its weights are gathered.
  if (shards_optimizer() && !health().ok()) step.lost = true;
  return step;
}

Status Learner::health() { return gpus_ == nullptr ? success() : gpus_->health(); }

Status Learner::sum_over_workers() {
  if (collective_.world_size() == 1) return sum_gradients();  // no other worker to wait for
  const Span span(trace_, "all-reduce");
  const auto begin = Trace::Clock::now();
  Status summed = sum_gradients();
  communicated_ += std::chrono::duration<double>(Trace::Clock::now() - begin).count();
  return summed;
}

// If GPUs cannot all-reduce by themselves, the host does it for them.
Status Learner::sum_gradients() {
  Parameters& parameters = network_->parameters();
  if (gradient_all_reduce_) return gradient_all_reduce_->finish(parameters.all_gradients());
  if (backend_.shares_memory()) return gradient_sum_->finish(parameters.all_gradients());
  if (collective_.world_size() == 1) return success();
  std::vector<float> gradients = parameters.gradients.download();
  FETTLE_TRY(gradient_sum_->finish(gradients));
  parameters.gradients.upload(gradients);
  return success();
}

// Runs even if the step was not applied, which only its result tells: workers then gather their old
// weights. If this worker keeps only its shard of the masters, operations read 16-bit copies of the
// decayed weights: the copies are gathered, two to a float (bounds are even), and the other weights
// (other_bounds_: biases, normalisation) as they are.
Status Learner::gather_weights() {
  const Span span(trace_, "all-gather");
  Parameters& parameters = network_->parameters();
  const auto begin = Trace::Clock::now();
  if (parameters.kept) {
    std::vector<std::int64_t> pairs;
    for (const std::int64_t bound : shard_bounds_) pairs.push_back(bound / 2);
    FETTLE_TRY(gather(parameters.rounded_in_pairs(), pairs));
    FETTLE_TRY(gather(parameters.all_weights(), other_bounds_));
  } else {
    FETTLE_TRY(gather(parameters.all_weights(), shard_bounds_));
  }
  communicated_ += std::chrono::duration<double>(Trace::Clock::now() - begin).count();
  parameters.round_weights(backend_);  // does nothing if the copies themselves were gathered
  network_->weights_changed();
  return success();
}

// Sends worker r's part of `values`, in the backend's memory, to all workers.
Status Learner::gather(std::span<float> values, std::span<const std::int64_t> bounds) {
  if (values.empty()) return success();
  if (gradient_all_reduce_) return gradient_all_reduce_->gather(values, bounds);
  if (backend_.shares_memory()) return collective_.all_gather(values, bounds);
  std::vector<float> on_host(values.size());
  const auto bytes = static_cast<std::int64_t>(values.size_bytes());
  backend_.download(values.data(), on_host.data(), bytes);
  FETTLE_TRY(collective_.all_gather(on_host, bounds));
  backend_.upload(on_host.data(), values.data(), bytes);
  return success();
}

Result<std::vector<float>> Learner::whole_weights() {
  const Parameters& parameters = network_->parameters();
  const bool here = collective_.rank() == 0;
  if (!parameters.kept) return here ? parameters.weights.download() : std::vector<float>();
  FETTLE_ASSIGN(std::vector<float> all,
                gather_shards(collective_, parameters.shard.download(), decayed_bounds_));
  if (!here) return all;
  const std::vector<float> others = parameters.weights.download();  // whole on every worker
  all.insert(all.end(), others.begin(), others.end());
  return all;
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
  if (backend_.shares_memory()) return enqueue_end();
  end_graph_.run(backend_, [this] { enqueue_end(); });
}

void Learner::enqueue_end() {
  Parameters& parameters = network_->parameters();
  optimizer_->enqueue_update();
  backend_.end_statistics(parameters.statistics.size(), optimizer_->device_control(),
                          statistics_before_.data(), parameters.statistic_sums(),
                          parameters.statistics.data());
  keep_statistics();
  parameters.gradients.set_zero();
  if (!shards_optimizer()) network_->weights_changed();
}

void Learner::undo_step() {
  Parameters& parameters = network_->parameters();
  parameters.gradients.set_zero();
  backend_.copy(statistics_before_.data(), parameters.statistics.data(),
                statistics_before_.bytes());
}

Result<Score> Learner::evaluate(const ImageSet& images, const Indices& samples,
                                const BatchWriter& writer) {
  // `always`: a trace keeps a few steps, and evaluation lies between steps.
  const Span span(trace_, "evaluation", "", /*always=*/true);
  const Range share =
      share_of({0, std::ssize(samples)}, collective_.world_size(), collective_.rank());
  auto left = std::span(samples).subspan(static_cast<std::size_t>(share.begin),
                                         static_cast<std::size_t>(share.size()));
  evaluation_sums_.set_zero();
  while (!left.empty()) {
    const auto size = std::min(left.size(), static_cast<std::size_t>(network_->max_samples()));
    run_evaluation(stage_evaluation(images, left.first(size), writer));
    left = left.subspan(size);
  }
  const kernels::LossSums mine = evaluation_sums_.download()[0];
  // Doubles count samples exactly up to 2^53.
  std::array<double, 3> sums = {mine.loss, static_cast<double>(mine.correct),
                                static_cast<double>(mine.samples)};
  FETTLE_TRY(collective_.sum(std::span<double>(sums)));
  return Score{sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
}

StagedBatch Learner::stage_evaluation(const ImageSet& images, std::span<const std::int64_t> samples,
                                      const BatchWriter& writer) {
  if (stage_->holds(images, writer)) return stage_->bring(samples, writer, 0);
  if (evaluated_.pixels.empty()) {
    evaluated_ = writer.make_batch(images, network_->max_samples());
  }
  writer.write(images, samples, 0, evaluated_);
  return stage_->bring(evaluated_, 0);
}

// The remainder comes once a validation, so capturing it would not pay.
void Learner::run_evaluation(const StagedBatch& batch) {
  const bool whole = batch.samples == network_->max_samples();
  if (!whole || !stage_->is_fixed() || is_traced()) return enqueue_evaluation(batch);
  evaluation_graphs_[batch].run(backend_, [=, this] { enqueue_evaluation(batch); });
}

void Learner::enqueue_evaluation(const StagedBatch& batch) {
  if (batch.gather != nullptr) stage_->gather(batch);
  const Pass pass{false, batch.samples};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels);
  loss_->run(batch.predictions, logits, batch.labels, {}, evaluation_sums_.data(), nullptr);
}

}  // namespace fettle::trainer
