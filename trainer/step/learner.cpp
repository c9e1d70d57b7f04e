#include "trainer/step/learner.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "api/trainer/trainer_fields.h"
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
  const std::int64_t batch = step.configured_batch;
  FETTLE_TRY(check_predictions(batch, plan.predictions()));
  ShardBounds shards = plan_shards(config, plan, collective.world_size());
  FETTLE_ASSIGN(auto model, ModelRunner::create(device, config, plan, step, seed,
                                                shards.of(collective.rank()), held));
  std::unique_ptr<Learner> learner(
      new Learner(config, collective, std::move(shards), std::move(model)));
  FETTLE_ASSIGN(
      learner->optimizer_,
      Optimizer::create(config, plan, batch * plan.predictions(), device.backend(),
                        learner->network().parameters(), learner->shards_.of(collective.rank()),
                        learner->exchange_->given_up()));
  kernels::LossOptions& loss = learner->loss_options_;
  loss.label_smoothing = static_cast<float>(config.label_smoothing);
  if (scales_loss(config)) loss.gradient_scale = learner->optimizer_->gradient_scale();
  return learner;
}

Learner::Learner(const api::TrainingConfig& config, Collective& collective, ShardBounds shards,
                 std::unique_ptr<ModelRunner> model)
    : collective_(collective),
      states_(states_of(config)),
      shards_(std::move(shards)),
      model_(std::move(model)),
      exchange_(std::make_unique<GradientExchange>(collective, backend(), network())) {}

// ---- Steps -------------------------------------------------------------------------------------

void Learner::set_trace(Trace* trace) {
  trace_ = trace;
  model_->set_trace(trace);
  exchange_->set_trace(trace);
}

void Learner::set_mask(std::span<const std::uint16_t> mask) {
  optimizer_->set_mask(mask);
  network().parameters().apply_mask(mask);
  weights_changed();
}

void Learner::add(const Batch& batch, std::int64_t epoch, bool last_of_step) {
  if (batch.size() == 0) return;  // finish_step() still sends this worker's zeros
  const Span span(trace_, "micro-batch");
  const StagedBatch staged = model_->stage(batch, epoch);
  // Between GPUs the all-reduce comes in between.
  if (last_of_step && collective_.world_size() == 1 && model_->captures()) {
    deferred_ = staged;  // finish_step() runs it, in one graph with the step's end
    return;
  }
  model_->run_batch(staged, loss_options_, exchange_->pass_hooks(last_of_step));
  if (last_of_step) exchange_->last_pass_enqueued();
}

Status Learner::finish_step(const LearningRates& rates, const WorkerRequests& requests) {
  kernels::StepInput input;
  std::ranges::transform(rates, input.learning_rates,
                         [](double rate) { return static_cast<float>(rate); });
  input.stop = requests.stop ? 1.0F : 0.0F;
  input.regroup = requests.regroup ? 1.0F : 0.0F;
  // When the step runs, the backend may know of more skips; the difference picks the rate.
  input.known_skips = optimizer_->control().loss_scale.skipped_steps;
  optimizer_->set_input(input);
  if (deferred_) {
    const Span span(trace_, "micro-batch and update");
    const StagedBatch last = *std::exchange(deferred_, std::nullopt);
    model_->graphs().run(StepGraphs::Part::kBatchAndEnd, last, [=, this] {
      kernels::LossOptions ends_step = loss_options_;  // with the work of enqueue_step_sums()
      ends_step.step_input = &optimizer_->device_control()->input;
      ends_step.step_sums = network().parameters().step_sums();
      model_->enqueue_batch(last, ends_step);
      enqueue_end();
    });
  } else {
    FETTLE_TRY(end_step_with_others());
  }
  optimizer_->enqueue_result();
  ++unsettled_;
  return success();
}

Status Learner::end_step_with_others() {
  model_->enqueue_step_sums(&optimizer_->device_control()->input);
  if (Status summed = exchange_->sum(); !summed.ok()) {
    model_->undo_step();
    return summed.error();
  }
  {
    const Span span(trace_, "update");
    if (backend().shares_memory()) {
      enqueue_end();
    } else {
      model_->graphs().run(StepGraphs::Part::kEnd, {}, [this] { enqueue_end(); });
    }
  }
  return shards_optimizer() ? exchange_->gather_weights(shards_) : success();
}

void Learner::enqueue_end() {
  optimizer_->enqueue_update();
  model_->enqueue_end(optimizer_->device_control());
  if (!shards_optimizer()) network().weights_changed();
}

std::optional<Learner::Step> Learner::settle(std::int64_t behind) {
  if (unsettled_ <= behind) return std::nullopt;
  --unsettled_;
  Step step = step_of(optimizer_->take_result());
  // The step of a sharded optimiser may be complete before its weights are gathered.
  if (shards_optimizer() && !health().ok()) step.lost = true;
  return step;
}

Result<Score> Learner::evaluate(const ImageSet& images, const Indices& samples,
                                const BatchWriter& writer) {
  // `always`: a trace keeps a few steps, and evaluation lies between steps.
  const Span span(trace_, "evaluation", "", /*always=*/true);
  const Range share =
      share_of({0, std::ssize(samples)}, collective_.world_size(), collective_.rank());
  const auto mine = std::span(samples).subspan(static_cast<std::size_t>(share.begin),
                                               static_cast<std::size_t>(share.size()));
  const kernels::LossSums found = model_->evaluate(images, mine, writer);
  // Doubles count samples exactly up to 2^53.
  std::array<double, 3> sums = {found.loss, static_cast<double>(found.correct),
                                static_cast<double>(found.samples)};
  FETTLE_TRY(collective_.sum(std::span<double>(sums)));
  return Score{sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
}

}  // namespace fettle::trainer
