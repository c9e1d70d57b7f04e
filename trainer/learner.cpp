#include "trainer/learner.h"

#include <algorithm>
#include <array>
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
  FETTLE_TRY(
      collective_.sum(std::span<float>(parameters.gradients.begin(), parameters.gradients.end())));
  std::array<double, 3> sums = {pending_.loss, static_cast<double>(pending_.correct),
                                static_cast<double>(pending_.samples)};
  FETTLE_TRY(collective_.sum(sums));
  pending_ = {};
  Step step;
  step.score = {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
  step.finite = std::isfinite(step.score.loss) &&
                optimizer_->update(parameters, step.score.samples, learning_rate);
  if (step.finite) network_->weights_changed();
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
