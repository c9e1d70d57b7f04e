#include "trainer/learner.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "api/names.h"

namespace fettle::trainer {

namespace {

Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config) {
  const auto threads = static_cast<int>(config.threads);
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

}  // namespace

kernels::DataType data_type(api::Precision precision) {
  return precision == api::Precision::kBf16 ? kernels::DataType::kBFloat16
                                            : kernels::DataType::kFloat32;
}

Result<std::unique_ptr<Learner>> Learner::create(const api::TrainingConfig& config,
                                                 const NetworkPlan& plan, std::int64_t max_samples,
                                                 std::uint64_t seed, Collective& collective) {
  std::unique_ptr<Learner> learner(new Learner(config, seed, collective));
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
  const Pass pass{true, seed_, epoch, batch.indices};
  const kernels::ConstBuffer logits = network_->forward(pass, batch.pixels.data());
  const kernels::LossSums sums =
      loss_->run(batch.size(), logits, batch.labels.data(),
                 static_cast<float>(config_.label_smoothing), network_->logits_gradient());
  network_->backward(pass, batch.pixels.data());
  pending_.loss += sums.loss;
  pending_.correct += sums.correct;
  pending_.samples += batch.size();
}

Result<Learner::Step> Learner::finish_step(double learning_rate) {
  Parameters& parameters = network_->parameters();
  write_sums(pending_, parameters.step_sums());
  pending_ = {};
  FETTLE_TRY(collective_.sum(parameters.all_gradients()));
  Step step;
  step.finite = read_sums(parameters.step_sums(), step.score) &&
                optimizer_->update(parameters, step.score.samples, learning_rate);
  if (step.finite) {
    network_->weights_changed();
  } else {
    std::ranges::fill(parameters.weight_gradients(), 0.0F);
  }
  return step;
}

Score Learner::evaluate(const ImageSet& images, const Indices& samples, const BatchWriter& writer) {
  if (evaluated_.pixels.empty()) {
    evaluated_ = writer.make_batch(images.shape(), network_->max_samples());
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
        loss_->run(evaluated_.size(), logits, evaluated_.labels.data(), 0, nullptr);
    score.loss += sums.loss;
    score.correct += sums.correct;
    score.samples += evaluated_.size();
  }
  return score;
}

}  // namespace fettle::trainer
