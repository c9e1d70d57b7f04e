#include "trainer/int8_metrics.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "api/trial/metric_names.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/batching.h"
#include "trainer/quantize/int8_network.h"

namespace fettle::trainer {

namespace metric = api::metric;

namespace {

constexpr double kBytesPerMebibyte = 1 << 20;
constexpr std::int64_t kMostHeld = 64;  // little memory beside the training's

// `count` of the samples, evenly spaced: neighbours in a text are alike.
Indices spread(const Indices& samples, std::int64_t count) {
  const std::int64_t all = std::ssize(samples);
  count = std::min(count, all);
  Indices chosen;
  for (std::int64_t i = 0; i < count; ++i) {
    chosen.push_back(samples[static_cast<std::size_t>(i * all / count)]);
  }
  return chosen;
}

// All weights, on every worker.
Result<std::vector<float>> weights_everywhere(const TrainingParts& parts) {
  Parameters& parameters = parts.learner.network().parameters();
  if (!parts.learner.shards_optimizer()) return parameters.weights.download();
  FETTLE_ASSIGN(std::vector<float> weights, parts.learner.whole_weights());  // at rank 0
  weights.resize(static_cast<std::size_t>(parameters.count));
  FETTLE_TRY(parts.collective.broadcast(std::as_writable_bytes(std::span(weights))));
  return weights;
}

Result<NetworkValues> quantized_learner(const TrainingParts& parts) {
  FETTLE_ASSIGN(const std::vector<float> weights, weights_everywhere(parts));
  const std::vector<float> statistics = parts.learner.network().parameters().statistics.download();
  return quantized_network(parts.task.config.model, parts.data.format(), weights, statistics);
}

// The ranges of rank 0, on every worker: on other hardware they could differ by a bit.
Result<std::vector<float>> ranges_everywhere(const TrainingParts& parts, Int8Network& network) {
  std::vector<float> ranges = network.ranges();
  FETTLE_TRY(parts.collective.broadcast(std::as_writable_bytes(std::span(ranges))));
  FETTLE_TRY(network.set_ranges(ranges));
  return ranges;
}

Result<double> accuracy_of(const TrainingParts& parts, Int8Network& network,
                           const BatchWriter& writer) {
  const Indices& samples = parts.data.split.validation;
  const Range share =
      share_of({0, std::ssize(samples)}, parts.collective.world_size(), parts.collective.rank());
  const auto mine = std::span(samples).subspan(static_cast<std::size_t>(share.begin),
                                               static_cast<std::size_t>(share.size()));
  const kernels::LossSums found = network.evaluate(parts.data.images, mine, writer);
  std::array<double, 2> sums = {static_cast<double>(found.correct),
                                static_cast<double>(found.samples)};
  FETTLE_TRY(parts.collective.sum(std::span<double>(sums)));
  return sums[0] / sums[1];
}

}  // namespace

Status check_quantize(const api::TrainerConfig& config, const SampleFormat& format) {
  if (!config.training.quantize) return success();
  return check_quantizable(config.model, format);
}

Result<Int8Result> measure_int8(const TrainingParts& parts, std::int64_t held) {
  const Span span(&parts.trace, "8-bit validation", "", /*always=*/true);
  const api::QuantizeConfig& config = *parts.task.config.training.quantize;
  FETTLE_ASSIGN(NetworkValues values, quantized_learner(parts));
  const double size = static_cast<double>(int8_bytes(values.plan)) / kBytesPerMebibyte;
  auto network =
      Int8Network::create(parts.learner.backend(), std::move(values), std::min(held, kMostHeld));
  double failed = network.ok() ? 0 : 1;
  FETTLE_TRY(parts.collective.sum(std::span(&failed, 1)));
  if (!network.ok()) {
    parts.hooks.log("the 8-bit network is not validated: " + network.error().message);
  }
  if (failed > 0) return Int8Result{};
  const BatchWriter writer(parts.data.normalize, {}, kernels::DataType::kFloat32, /*seed=*/0);
  (*network)->calibrate(config.calibration, parts.data.images,
                        spread(parts.data.split.train, config.samples), writer);
  Int8Result result;
  FETTLE_ASSIGN(result.ranges, ranges_everywhere(parts, **network));
  FETTLE_TRY((*network)->round(config.weight_bits));
  FETTLE_ASSIGN(const double accuracy, accuracy_of(parts, **network, writer));
  result.metrics = {{metric::kInt8Accuracy, accuracy}, {metric::kInt8Size, size}};
  return result;
}

}  // namespace fettle::trainer
