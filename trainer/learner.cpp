#include "trainer/learner.h"

#include <algorithm>
#include <bit>
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
// than 2^24, up to which a float holds every whole number. The last one is the flag: how many
// workers' loss is not finite.
void write_sums(const Score& mine, std::span<float, kStepSums> to) {
  to[0] = static_cast<float>(mine.loss);
  to[1] = static_cast<float>(mine.correct);
  to[2] = static_cast<float>(mine.samples);
  to[3] = std::isfinite(mine.loss) ? 0.0F : 1.0F;
}

// The same of all workers; false where the loss is not finite.
bool read_sums(std::span<const float, kStepSums> from, Score& to) {
  to.loss = static_cast<double>(from[0]);
  to.correct = static_cast<std::int64_t>(from[1]);
  to.samples = static_cast<std::int64_t>(from[2]);
  return from[3] == 0 && std::isfinite(from[0]);
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

void Learner::weights_changed() {
  network_->parameters().round_weights(*backend_);
  network_->weights_changed();
}

void Learner::add(const Batch& batch, std::int64_t epoch) {
  if (batch.size() == 0) return;
  if (scales_loss() && statistics_before_.empty()) {
    const auto& statistics = network_->parameters().statistics;
    statistics_before_.assign(statistics.begin(), statistics.end());
  }
  const Pass pass{true, seed_, epoch, batch.indices};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels.data());
  const kernels::LossOptions options{static_cast<float>(config_.label_smoothing),
                                     static_cast<float>(gradient_scale())};
  const kernels::LossSums sums = loss_->run(std::ssize(batch.labels), logits, batch.labels.data(),
                                            options, network_->logits_gradient());
  network_->backward(pass, batch.pixels.data());
  pending_.loss += sums.loss;
  pending_.correct += sums.correct;
  pending_.samples += std::ssize(batch.labels);
}

Result<Learner::Step> Learner::finish_step(double learning_rate) {
  Parameters& parameters = network_->parameters();
  write_sums(pending_, parameters.step_sums());
  pending_ = {};
  FETTLE_TRY(collective_.sum(parameters.all_gradients()));
  Score score;
  const bool finite = read_sums(parameters.step_sums(), score);
  return end_step(score, finite, learning_rate);
}

Learner::Step Learner::end_step(const Score& score, bool finite, double learning_rate) {
  Parameters& parameters = network_->parameters();
  const double divisor = static_cast<double>(score.samples) * gradient_scale();
  if (finite && optimizer_->update(parameters, divisor, learning_rate)) {
    statistics_before_.clear();
    if (scales_loss()) scaler_.count_good_step();
    network_->weights_changed();
    return {score, true, false};
  }
  std::ranges::fill(parameters.weight_gradients(), 0.0F);
  if (!scales_loss()) return {score, false, false};
  // Empty on a worker that had no samples, whose statistics are as they were.
  std::ranges::copy(statistics_before_, parameters.statistics.begin());
  statistics_before_.clear();
  const bool skipped = scaler_.skip_step();
  return {score, skipped, skipped};
}

Score Learner::evaluate(const ImageSet& images, const Indices& samples, const BatchWriter& writer) {
  if (evaluated_.pixels.empty()) {
    evaluated_ = writer.make_batch(images, network_->max_samples());
  }
  Score score;
  std::span<const std::int64_t> left(samples);
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
