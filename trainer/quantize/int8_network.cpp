#include "trainer/quantize/int8_network.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "trainer/model/activation_plan.h"
#include "trainer/quantize/calibration.h"
#include "trainer/quantize/weight_grid.h"

namespace fettle::trainer {

Result<std::unique_ptr<Int8Network>> Int8Network::create(kernels::Backend& backend,
                                                         NetworkValues values,
                                                         std::int64_t samples) {
  std::unique_ptr<Int8Network> network(new Int8Network(backend, std::move(values), samples));
  FETTLE_TRY(network->allocate());
  return network;
}

// As allocate() does.
std::int64_t Int8Network::bytes(const NetworkPlan& plan, std::int64_t samples) {
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t of_sample =
      plan_forward(plan).elements + plan.input.size() + plan.predictions();
  return (plan.parameters + plan.statistics + samples * of_sample) * kElement +
         static_cast<std::int64_t>(sizeof(kernels::LossSums));
}

Status Int8Network::allocate() {
  const NetworkPlan& plan = values_.plan;
  const kernels::PlanOptions options{.max_samples = samples_};
  FETTLE_ASSIGN(network_, Network::create_forward_only(plan, backend_, options, values_.weights,
                                                       values_.statistics));
  loss_ = backend_.softmax_cross_entropy(plan.classes, options.type);
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(float));  // and of a token's id
  FETTLE_ASSIGN(pixels_, kernels::DeviceArray<std::uint8_t>::create(
                             backend_, samples_ * plan.input.size() * kElement));
  FETTLE_ASSIGN(
      labels_, kernels::DeviceArray<std::int32_t>::create(backend_, samples_ * plan.predictions()));
  FETTLE_ASSIGN(sums_, kernels::DeviceArray<kernels::LossSums>::create(backend_, 1));
  return success();
}

void Int8Network::upload_statistics() {
  network_->parameters().statistics.upload(values_.statistics);
  network_->weights_changed();
}

void Int8Network::calibrate(api::Calibration calibration, const ImageSet& images,
                            std::span<const std::int64_t> samples, const BatchWriter& writer) {
  std::map<std::int64_t, RangeObserver> observers;  // by offset of the layer's range
  observe(images, samples, writer, [&](const LayerPlan& layer, std::span<const float> values) {
    observers[layer.range.offset].see(values);
  });
  const bool percentile = calibration == api::Calibration::kPercentile;
  if (percentile) {
    observe(images, samples, writer, [&](const LayerPlan& layer, std::span<const float> values) {
      observers[layer.range.offset].count(values);
    });
  }
  for (const auto& [offset, observer] : observers) {
    const RangeObserver::Range range = percentile ? observer.percentile() : observer.whole();
    const auto at = static_cast<std::size_t>(offset);
    values_.statistics[at] = range.least;
    values_.statistics[at + 1] = range.most;
  }
  upload_statistics();
}

Status Int8Network::set_ranges(std::span<const float> ranges) {
  FETTLE_TRY(trainer::set_ranges(ranges, values_.plan, values_.statistics));
  upload_statistics();
  return success();
}

Status Int8Network::round(std::int64_t weight_bits) {
  round_to_integers(values_.plan, values_.statistics, weight_bits, values_.weights);
  FETTLE_TRY(network_->parameters().set_weights(values_.weights, backend_));
  network_->weights_changed();
  return success();
}

kernels::LossSums Int8Network::evaluate(const ImageSet& images,
                                        std::span<const std::int64_t> samples,
                                        const BatchWriter& writer) {
  sums_.set_zero();
  run(images, samples, writer, nullptr,
      [this](std::int64_t predictions, kernels::ConstBuffer logits) {
        loss_->run(predictions, logits, labels_.data(), {}, sums_.data(), nullptr);
      });
  return sums_.download()[0];
}

void Int8Network::observe(const ImageSet& images, std::span<const std::int64_t> samples,
                          const BatchWriter& writer, const Observe& observe) {
  std::vector<float> values;
  const InputObserver observer = [&](const LayerPlan& layer, const float* x, std::int64_t count) {
    values.resize(static_cast<std::size_t>(count));
    backend_.download(x, values.data(), count * std::int64_t{sizeof(float)});
    observe(layer, values);
  };
  run(images, samples, writer, &observer, [](std::int64_t, kernels::ConstBuffer) {});
}

void Int8Network::run(const ImageSet& images, std::span<const std::int64_t> samples,
                      const BatchWriter& writer, const InputObserver* observer,
                      const UseLogits& use) {
  Batch batch = writer.make_batch(images, samples_);
  const std::int64_t bytes = values_.plan.input.size() * std::int64_t{sizeof(float)};
  while (!samples.empty()) {
    const auto size = std::min(samples.size(), static_cast<std::size_t>(samples_));
    writer.write(images, samples.first(size), /*epoch=*/0, batch);
    backend_.upload(batch.pixels.data(), pixels_.data(), batch.size() * bytes);
    labels_.upload(batch.labels);
    Pass pass{.samples = batch.size()};
    pass.observer = observer;
    use(std::ssize(batch.labels), network_->forward(pass, pixels_.data()));
    samples = samples.subspan(size);
  }
}

}  // namespace fettle::trainer
