#include "trainer/learner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "api/names.h"
#include "api/trainer_fields.h"
#include "trainer/batching.h"

namespace fettle::trainer {

namespace {

Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config) {
  const auto threads = static_cast<int>(config.threads);
  // fp16 on a CPU is for trying out what a GPU will do; only the reference has it.
  const bool reference_only = config.precision == api::Precision::kFp16;
  if (reference_only && config.backend == api::BackendKind::kAuto) {
    return kernels::make_backend(api::to_string(api::BackendKind::kReference), threads);
  }
  if (config.backend != api::BackendKind::kAuto) {
    return kernels::make_backend(api::to_string(config.backend), threads);
  }
  auto fast = kernels::make_backend(api::to_string(api::BackendKind::kOnednn), threads);
  if (fast.ok()) return fast;
  return kernels::make_backend(api::to_string(api::BackendKind::kReference), threads);
}

// This worker's part of what is summed up with the gradients. Counts are exact: no batch is larger
// than 2^24, up to which a float holds every whole number. The last three are flags: how many
// workers' loss is not finite, and how many have a wish.
void write_sums(const Score& mine, const Wishes& wishes, std::span<float, kStepSums> to) {
  to[0] = static_cast<float>(mine.loss);
  to[1] = static_cast<float>(mine.correct);
  to[2] = static_cast<float>(mine.samples);
  to[3] = std::isfinite(mine.loss) ? 0.0F : 1.0F;
  to[4] = wishes.stop ? 1.0F : 0.0F;
  to[5] = wishes.regroup ? 1.0F : 0.0F;
}

// The same of all workers; `finite` as far as the loss says.
Learner::Step read_sums(std::span<const float, kStepSums> from) {
  Learner::Step step;
  step.score.loss = static_cast<double>(from[0]);
  step.score.correct = static_cast<std::int64_t>(from[1]);
  step.score.samples = static_cast<std::int64_t>(from[2]);
  step.finite = from[3] == 0 && std::isfinite(from[0]);
  step.wishes = {from[4] > 0, from[5] > 0};
  return step;
}

// Gradients by logits are at most 1; the sum of a batch's losses, scaled by 65536, would overflow
// where the mean does not. A power of two divides without rounding.
double power_of_two_above(std::int64_t batch) {
  return static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(batch)));
}

// What write_sums relies on; of images a batch is never larger.
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
  const std::int64_t batch = global_batch_of(config, collective.world_size());
  FETTLE_TRY(check_predictions(batch, plan.predictions()));
  std::unique_ptr<Learner> learner(new Learner(config, seed, collective));
  learner->batch_divisor_ = power_of_two_above(batch * plan.predictions());
  FETTLE_ASSIGN(learner->backend_, open_backend(config));
  const kernels::DataType type = data_type(config.precision);
  FETTLE_ASSIGN(learner->network_,
                Network::create(plan, *learner->backend_, {max_samples, type}, seed));
  learner->loss_ = learner->backend_->softmax_cross_entropy(plan.classes, type);
  learner->optimizer_ = std::make_unique<Optimizer>(config, plan, *learner->backend_);
  return learner;
}

void Learner::set_trace(Trace* trace) {
  trace_ = trace;
  network_->set_trace(trace);
}

void Learner::weights_changed() {
  network_->parameters().round_weights(*backend_);
  network_->weights_changed();
}

void Learner::add(const Batch& batch, std::int64_t epoch) {
  if (batch.size() == 0) return;
  begin_statistics();
  const Pass pass{true, seed_, epoch, batch.indices};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels.data());
  const kernels::LossOptions options{static_cast<float>(config_.label_smoothing),
                                     static_cast<float>(gradient_scale())};
  const kernels::LossSums sums = [&] {
    const Span span(trace_, "loss");
    return loss_->run(std::ssize(batch.labels), logits, batch.labels.data(), options,
                      network_->logits_gradient());
  }();
  network_->backward(pass, batch.pixels.data());
  add_statistics(std::ssize(batch.labels));
  pending_.loss += sums.loss;
  pending_.correct += sums.correct;
  pending_.samples += std::ssize(batch.labels);
}

// Every micro-batch of a step starts from the same statistics.
void Learner::begin_statistics() {
  auto& statistics = network_->parameters().statistics;
  if (statistics_before_.empty()) {
    statistics_before_.assign(statistics.begin(), statistics.end());
  } else {
    std::ranges::copy(statistics_before_, statistics.begin());
  }
}

void Learner::add_statistics(std::int64_t samples) {
  Parameters& parameters = network_->parameters();
  const std::span<float> sums = parameters.statistic_sums();
  const auto weight = static_cast<float>(samples);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * parameters.statistics.data()[i];
}

// Leaves the statistics where the step brings them.
void Learner::end_statistics(std::int64_t samples) {
  Parameters& parameters = network_->parameters();
  const std::span<float> sums = parameters.statistic_sums();
  const auto divisor = static_cast<double>(samples);
  std::ranges::transform(sums, parameters.statistics.begin(), [divisor](float sum) {
    return static_cast<float>(static_cast<double>(sum) / divisor);
  });
  std::ranges::fill(sums, 0.0F);
  statistics_before_.clear();
}

void Learner::undo_step() {
  Parameters& parameters = network_->parameters();
  std::ranges::fill(parameters.weight_gradients(), 0.0F);
  std::ranges::fill(parameters.statistic_sums(), 0.0F);
  // Empty on a worker that had no samples, whose statistics are as they were.
  std::ranges::copy(statistics_before_, parameters.statistics.begin());
  statistics_before_.clear();
}

Result<Learner::Step> Learner::finish_step(double learning_rate, const Wishes& wishes) {
  Parameters& parameters = network_->parameters();
  write_sums(pending_, wishes, parameters.step_sums());
  pending_ = {};
  if (Status summed = sum_gradients(); !summed.ok()) {
    undo_step();
    return summed.error();
  }
  return end_step(read_sums(parameters.step_sums()), learning_rate);
}

Status Learner::sum_gradients() {
  if (collective_.world_size() == 1) return success();
  const Span span(trace_, "all-reduce");
  const auto begin = Trace::Clock::now();
  Status summed = collective_.sum(network_->parameters().all_gradients());
  communicated_ += std::chrono::duration<double>(Trace::Clock::now() - begin).count();
  return summed;
}

Learner::Step Learner::end_step(Step step, double learning_rate) {
  const Span span(trace_, "update");
  Parameters& parameters = network_->parameters();
  const std::int64_t samples = step.score.samples;
  const double divisor = static_cast<double>(samples) * gradient_scale();
  if (step.finite && optimizer_->update(parameters, divisor, learning_rate)) {
    end_statistics(samples);
    if (scales_loss()) scaler_.count_good_step();
    network_->weights_changed();
    return step;
  }
  undo_step();
  step.skipped = scales_loss() && scaler_.skip_step();
  step.finite = step.skipped;
  return step;
}

Result<Score> Learner::evaluate(const ImageSet& images, const Indices& samples,
                                const BatchWriter& writer) {
  const Range share =
      share_of({0, std::ssize(samples)}, collective_.world_size(), collective_.rank());
  const std::span<const std::int64_t> all(samples);
  const Score mine = evaluate_share(
      images,
      all.subspan(static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.size())),
      writer);
  std::array<double, 3> sums = {mine.loss, static_cast<double>(mine.correct),
                                static_cast<double>(mine.samples)};
  FETTLE_TRY(collective_.sum(std::span<double>(sums)));
  return Score{sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
}

Score Learner::evaluate_share(const ImageSet& images, std::span<const std::int64_t> left,
                              const BatchWriter& writer) {
  if (evaluated_.pixels.empty()) {
    evaluated_ = writer.make_batch(images, network_->max_samples());
  }
  Score score;
  while (!left.empty()) {
    const auto size = std::min(left.size(), static_cast<std::size_t>(network_->max_samples()));
    writer.write(images, left.first(size), 0, evaluated_);
    left = left.subspan(size);
    const Pass pass{false, seed_, 0, evaluated_.indices};
    const kernels::ConstBuffer logits = network_->forward(pass, evaluated_.pixels.data());
    const kernels::LossSums sums =
        loss_->run(std::ssize(evaluated_.labels), logits, evaluated_.labels.data(), {}, nullptr);
    score.loss += sums.loss;
    score.correct += sums.correct;
    score.samples += std::ssize(evaluated_.labels);
  }
  return score;
}

}  // namespace fettle::trainer
