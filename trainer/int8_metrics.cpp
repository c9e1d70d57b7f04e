#include "trainer/int8_metrics.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
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

// Samples that the 8-bit network takes at once, in a training that holds `held`.
std::int64_t int8_samples(std::int64_t held) { return std::min(held, kMostHeld); }

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

// The network with its ranges from the training samples, the same on all workers. nullptr: a worker
// has too little memory, which `lacks` says of this one. Errors: a worker was lost.
Result<std::unique_ptr<Int8Network>> make_network(const TrainingParts& parts, NetworkValues values,
                                                  std::int64_t held, std::string& lacks) {
  auto network =
      Int8Network::create(parts.learner.backend(), std::move(values), int8_samples(held));
  double failed = network.ok() ? 0 : 1;
  FETTLE_TRY(parts.collective.sum(std::span(&failed, 1)));
  if (!network.ok()) lacks = network.error().message;
  if (failed > 0) return std::unique_ptr<Int8Network>();
  return std::move(*network);
}

BatchWriter plain_writer(const TrainingParts& parts) {
  return {parts.data.normalize, {}, kernels::DataType::kFloat32, /*seed=*/0};
}

// Returns the ranges.
Result<std::vector<float>> calibrate(const TrainingParts& parts, Int8Network& network) {
  const api::QuantizeConfig& config = *parts.task.config.training.quantize;
  network.calibrate(config.calibration, parts.data.images,
                    spread(parts.data.split.train, config.samples), plain_writer(parts));
  return ranges_everywhere(parts, network);
}

// The ranges of a network that is trained on grids; empty: it has none yet, or is another one.
std::vector<float> trained_ranges(Network& network) {
  if (!network.plan().trains_quantized()) return {};
  std::vector<float> ranges = ranges_of(network.plan(), network.parameters().statistics.download());
  const bool unset = std::ranges::all_of(ranges, [](float end) { return end == 0; });
  return unset ? std::vector<float>() : ranges;
}

}  // namespace

Status begin_quantized_training(const TrainingParts& parts, std::int64_t held) {
  ModelRunner& runner = parts.learner.runner();
  Parameters& parameters = runner.network().parameters();
  if (trained_ranges(runner.network()).empty()) {
    const Span span(&parts.trace, "calibration", "", /*always=*/true);
    FETTLE_ASSIGN(NetworkValues values, quantized_learner(parts));
    std::string lacks = "another worker has too little memory";
    FETTLE_ASSIGN(const auto network, make_network(parts, std::move(values), held, lacks));
    if (network == nullptr) return invalid("training.quantize cannot be calibrated: " + lacks);
    FETTLE_ASSIGN(const std::vector<float> ranges, calibrate(parts, *network));
    std::vector<float> statistics = parameters.statistics.download();
    FETTLE_TRY(set_ranges(ranges, runner.network().plan(), statistics));
    parameters.statistics.upload(statistics);
  }
  runner.set_quantizes(true);
  runner.weights_changed();
  return success();
}

Result<std::int64_t> int8_network_bytes(const api::TrainerConfig& config,
                                        const SampleFormat& format, const TrainingWorld& world) {
  if (!config.training.quantize) return 0;
  FETTLE_TRY(check_quantizable(config.model, format));
  FETTLE_ASSIGN(const NetworkPlan plan, quantized_plan(config.model, format));
  return Int8Network::bytes(plan, int8_samples(plan_step(config, world).dealing.limit));
}

Result<Int8Result> measure_int8(const TrainingParts& parts, std::int64_t held) {
  const Span span(&parts.trace, "8-bit validation", "", /*always=*/true);
  const api::QuantizeConfig& config = *parts.task.config.training.quantize;
  FETTLE_ASSIGN(NetworkValues values, quantized_learner(parts));
  const double size = static_cast<double>(int8_bytes(values.plan)) / kBytesPerMebibyte;
  std::string lacks;
  FETTLE_ASSIGN(const auto network, make_network(parts, std::move(values), held, lacks));
  if (!lacks.empty()) parts.hooks.log("the 8-bit network is not validated: " + lacks);
  if (network == nullptr) return Int8Result{};
  Int8Result result;
  result.ranges = trained_ranges(parts.learner.network());
  if (result.ranges.empty()) {
    FETTLE_ASSIGN(result.ranges, calibrate(parts, *network));
  } else {
    FETTLE_TRY(network->set_ranges(result.ranges));
  }
  FETTLE_TRY(network->round(config.weight_bits));
  FETTLE_ASSIGN(const double accuracy, accuracy_of(parts, *network, plain_writer(parts)));
  result.metrics = {{metric::kInt8Accuracy, accuracy}, {metric::kInt8Size, size}};
  return result;
}

}  // namespace fettle::trainer
