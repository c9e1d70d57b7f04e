#include "trainer/step/model_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/step/precision.h"

namespace fettle::trainer {

// ---- Creation ----------------------------------------------------------------------------------

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(TrainingDevice& device,
                                                         const api::TrainingConfig& config,
                                                         const NetworkPlan& plan,
                                                         const StepShape& step, std::uint64_t seed,
                                                         const std::optional<Range>& shard,
                                                         const std::optional<HeldSamples>& held) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner(device, seed));
  const kernels::PlanOptions options = plan_options(device.backend(), config, step.dealing.limit);
  FETTLE_ASSIGN(runner->network_, device.network(plan, options, seed, config.recompute, shard));
  runner->loss_ = device.backend().softmax_cross_entropy(plan.classes, options.type);
  FETTLE_TRY(runner->allocate(device, step, options.type, held));
  runner->keep_statistics();  // the first step begins from these
  return runner;
}

Status ModelRunner::allocate(TrainingDevice& device, const StepShape& step, kernels::DataType type,
                             const std::optional<HeldSamples>& held) {
  using Sums = kernels::DeviceArray<kernels::LossSums>;
  const NetworkPlan& plan = network_->plan();
  const std::int64_t bytes =
      plan.tokens ? std::int64_t{sizeof(std::int32_t)} : kernels::size_of(type);
  const BatchStaging::Size size{step.dealing.limit, plan.input.size() * bytes, plan.predictions(),
                                type};
  FETTLE_ASSIGN(stage_, BatchStaging::create(device, size, held));
  FETTLE_ASSIGN(sums_, Sums::create(backend_, 1));
  FETTLE_ASSIGN(evaluation_sums_, Sums::create(backend_, 1));
  FETTLE_ASSIGN(statistics_before_, kernels::DeviceArray<float>::create(backend_, plan.statistics));
  return success();
}

void ModelRunner::set_teacher(std::unique_ptr<Network> teacher, const api::DistillConfig& config) {
  CHECK(teacher->max_samples() >= network_->max_samples(), "the teacher takes the same batches");
  teacher_ = std::move(teacher);
  taught_.temperature = static_cast<float>(config.temperature);
  taught_.weight = static_cast<float>(config.weight);
}

void ModelRunner::set_quantizes(bool quantizes) {
  network_->set_quantizes(quantizes);
  graphs_.forget();
}

// ---- Training ----------------------------------------------------------------------------------

void ModelRunner::set_trace(Trace* trace) {
  trace_ = trace;
  traced_.reset();  // ends before the next begins
  if (trace != nullptr) traced_.emplace(*trace, backend_);
  network_->set_trace(trace);
}

void ModelRunner::weights_changed() {
  network_->parameters().round_weights(backend_);
  network_->weights_changed();
  keep_statistics();
}

void ModelRunner::keep_statistics() {
  backend_.copy(network_->parameters().statistics.data(), statistics_before_.data(),
                statistics_before_.bytes());
}

StagedBatch ModelRunner::stage(const Batch& batch, std::int64_t epoch) {
  const double waited = stage_->waited();  // includes evaluation, which must not count here
  const StagedBatch staged = stage_->bring(batch, epoch);
  waited_for_data_ += stage_->waited() - waited;
  return staged;
}

void ModelRunner::run_batch(const StagedBatch& batch, const kernels::LossOptions& loss,
                            const PassHooks& hooks) {
  if (!captures()) return enqueue_batch(batch, loss, hooks);
  graphs_.run(StepGraphs::Part::kBatch, batch, [=, this] { enqueue_batch(batch, loss, hooks); });
}

void ModelRunner::enqueue_batch(const StagedBatch& batch, const kernels::LossOptions& loss,
                                const PassHooks& hooks) {
  Parameters& parameters = network_->parameters();
  if (batch.gather != nullptr) {
    const Span span(trace_, "gather");
    stage_->gather(batch);
  }
  kernels::LossOptions options = loss;
  options.teacher = enqueue_teacher(batch);
  // Every micro-batch of a step starts from the same statistics.
  backend_.copy(statistics_before_.data(), parameters.statistics.data(),
                statistics_before_.bytes());
  const Pass pass{/*training=*/true, batch.samples, seed_, batch.epoch, batch.indices};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels);
  {
    const Span span(trace_, "loss");
    loss_->run(batch.predictions, logits, batch.labels, options, sums_.data(),
               network_->logits_gradient());
  }
  network_->backward(pass, batch.pixels, hooks.layer_done);
  if (hooks.pass_done) hooks.pass_done();
  // Weighted by predictions (of images: samples); end_statistics() divides by their number.
  const std::int64_t frozen = network_->plan().frozen_statistics;
  backend_.add_scaled(parameters.statistics.size() - frozen, static_cast<float>(batch.predictions),
                      parameters.statistics.data() + frozen, parameters.statistic_sums() + frozen);
}

kernels::LossTeacher ModelRunner::enqueue_teacher(const StagedBatch& batch) {
  if (teacher_ == nullptr) return {};
  const Span span(trace_, "teacher");
  kernels::LossTeacher taught = taught_;
  taught.logits = teacher_->forward(Pass{/*training=*/false, batch.samples}, batch.pixels);
  return taught;
}

void ModelRunner::enqueue_step_sums(const kernels::StepInput* input) {
  backend_.add_step_sums(sums_.data(), input, network_->parameters().step_sums());
}

void ModelRunner::enqueue_end(const kernels::StepControl* control) {
  Parameters& parameters = network_->parameters();
  // A sum divided again may have other bits: frozen statistics take no part.
  const std::int64_t frozen = network_->plan().frozen_statistics;
  backend_.end_statistics(parameters.statistics.size() - frozen, control,
                          statistics_before_.data() + frozen, parameters.statistic_sums() + frozen,
                          parameters.statistics.data() + frozen);
  keep_statistics();
  parameters.gradients.set_zero();
}

void ModelRunner::undo_step() {
  Parameters& parameters = network_->parameters();
  parameters.gradients.set_zero();
  backend_.copy(statistics_before_.data(), parameters.statistics.data(),
                statistics_before_.bytes());
}

// ---- Evaluation --------------------------------------------------------------------------------

kernels::LossSums ModelRunner::evaluate(const ImageSet& images,
                                        std::span<const std::int64_t> samples,
                                        const BatchWriter& writer) {
  const WithoutGrids plain(*network_);
  evaluation_sums_.set_zero();
  while (!samples.empty()) {
    const auto size = std::min(samples.size(), static_cast<std::size_t>(network_->max_samples()));
    run_evaluation(stage_evaluation(images, samples.first(size), writer));
    samples = samples.subspan(size);
  }
  return evaluation_sums_.download()[0];
}

void ModelRunner::predict(const ImageSet& images, std::span<const std::int64_t> samples,
                          const BatchWriter& writer, const TakeLogits& take) {
  CHECK(network_->options().type == kernels::DataType::kFloat32, "logits are read as fp32");
  const WithoutGrids plain(*network_);
  const NetworkPlan& plan = network_->plan();
  std::vector<float> logits;
  while (!samples.empty()) {
    const auto size = std::min(samples.size(), static_cast<std::size_t>(network_->max_samples()));
    const StagedBatch batch = stage_evaluation(images, samples.first(size), writer);
    if (batch.gather != nullptr) stage_->gather(batch);
    const kernels::ConstBuffer there =
        network_->forward(Pass{/*training=*/false, batch.samples}, batch.pixels);
    logits.resize(static_cast<std::size_t>(batch.predictions * plan.classes));
    backend_.download(there, logits.data(), std::ssize(logits) * std::int64_t{sizeof(float)});
    take(logits);
    samples = samples.subspan(size);
  }
}

StagedBatch ModelRunner::stage_evaluation(const ImageSet& images,
                                          std::span<const std::int64_t> samples,
                                          const BatchWriter& writer) {
  if (stage_->holds(images, writer)) return stage_->bring(samples, writer, 0);
  if (evaluated_.pixels.empty()) {
    evaluated_ = writer.make_batch(images, network_->max_samples());
  }
  writer.write(images, samples, 0, evaluated_);
  return stage_->bring(evaluated_, 0);
}

// The remainder comes once a validation, so capturing it would not pay.
void ModelRunner::run_evaluation(const StagedBatch& batch) {
  const bool whole = batch.samples == network_->max_samples();
  if (!whole || !captures()) return enqueue_evaluation(batch);
  graphs_.run(StepGraphs::Part::kEvaluation, batch, [=, this] { enqueue_evaluation(batch); });
}

void ModelRunner::enqueue_evaluation(const StagedBatch& batch) {
  if (batch.gather != nullptr) stage_->gather(batch);
  const Pass pass{false, batch.samples};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels);
  loss_->run(batch.predictions, logits, batch.labels, {}, evaluation_sums_.data(), nullptr);
}

}  // namespace fettle::trainer
