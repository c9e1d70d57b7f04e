#include "trainer/quantize/quantized_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/model/gpt.h"
#include "trainer/model/quantized_inputs.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

constexpr float kEpsilon = 1e-5F;  // of batch norms

// ---- Folding -----------------------------------------------------------------------------------

// A model without the batch norms that can be folded, and where its entries were.
struct FoldedModel {
  api::ModelConfig model;
  std::vector<std::int64_t> index_of;  // by entry of `model`: its index in the trained model
};

FoldedModel without_norms(const api::ModelConfig& trained) {
  FoldedModel folded{trained, {}};
  folded.model.layers.clear();
  for (std::size_t i = 0; i < trained.layers.size(); ++i) {
    const api::LayerConfig& layer = trained.layers[i];
    if (layer.type == LayerType::kBatchNorm && i > 0 &&
        computes_in_bytes(trained.layers[i - 1].type)) {
      folded.model.layers.back().bias = true;
      continue;
    }
    folded.model.layers.push_back(layer);
    folded.index_of.push_back(static_cast<std::int64_t>(i));
  }
  return folded;
}

const LayerPlan* find_entry(const NetworkPlan& plan, std::int64_t index) {
  const auto found = std::ranges::find(plan.layers, index, &LayerPlan::index);
  return found == plan.layers.end() ? nullptr : &*found;
}

// Copies the numbers of a network to the places that they have without its batch norms.
class Folder {
 public:
  Folder(const NetworkPlan& from, std::span<const float> weights, std::span<const float> statistics,
         NetworkValues& to)
      : from_(from), weights_(weights), statistics_(statistics), to_(to) {}

  void take(const LayerPlan& layer) {
    const LayerPlan* const trained = find_entry(from_, layer.index);
    CHECK(trained != nullptr, "a folded network has only layers of the trained one");
    copy(weights_, trained->weights, layer.weights, to_.weights);
    copy(weights_, trained->biases, layer.biases, to_.weights);
    copy(weights_, trained->positions, layer.positions, to_.weights);
    copy(statistics_, trained->running_mean, layer.running_mean, to_.statistics);
    copy(statistics_, trained->running_variance, layer.running_variance, to_.statistics);
    const LayerPlan* const next = find_entry(from_, layer.index + 1);
    if (!computes_in_bytes(layer.type) || next == nullptr || next->type != LayerType::kBatchNorm)
      return;
    fold(*next, layer);
  }

 private:
  static void copy(std::span<const float> from, const Block& source, const Block& target,
                   std::vector<float>& to) {
    const auto begin = from.begin() + source.offset;
    std::copy(begin, begin + source.count, to.begin() + target.offset);
  }

  float weight(const Block& block, std::int64_t i) const {
    return weights_[static_cast<std::size_t>(block.offset + i)];
  }
  float statistic(const Block& block, std::int64_t i) const {
    return statistics_[static_cast<std::size_t>(block.offset + i)];
  }

  // (w x + b - mean) * factor + shift = (w * factor) x + (b - mean) * factor + shift
  void fold(const LayerPlan& norm, const LayerPlan& layer) {
    const std::int64_t width = layer.weights.count / layer.output.channels;
    for (std::int64_t output = 0; output < layer.output.channels; ++output) {
      const float factor = weight(norm.weights, output) /
                           std::sqrt(statistic(norm.running_variance, output) + kEpsilon);
      float* const row = to_.weights.data() + layer.weights.offset + output * width;
      for (std::int64_t i = 0; i < width; ++i) row[i] *= factor;
      float& bias = to_.weights[static_cast<std::size_t>(layer.biases.offset + output)];
      bias = (bias - statistic(norm.running_mean, output)) * factor + weight(norm.biases, output);
    }
  }

  const NetworkPlan& from_;
  const std::span<const float> weights_;
  const std::span<const float> statistics_;
  NetworkValues& to_;
};

// The plan of `model`, whose plan is `trained`, without norms; its layers keep their names.
Result<NetworkPlan> folded_plan(const NetworkPlan& trained, const api::ModelConfig& model,
                                const SampleFormat& format) {
  const FoldedModel folded = without_norms(model);
  FETTLE_ASSIGN(NetworkPlan plan, plan_network(folded.model, format));
  for (LayerPlan& layer : plan.layers) {
    layer.index = folded.index_of[static_cast<std::size_t>(layer.index)];
    layer.name = find_entry(trained, layer.index)->name;
  }
  return plan;
}

}  // namespace

Result<NetworkPlan> quantized_plan(const api::ModelConfig& config, const SampleFormat& format) {
  const api::ModelConfig model = config.gpt ? with_layers(config) : config;
  FETTLE_ASSIGN(const NetworkPlan trained, plan_network(model, format));
  FETTLE_ASSIGN(const NetworkPlan folded, folded_plan(trained, model, format));
  return with_quantized_inputs(folded);
}

Result<NetworkValues> quantized_network(const api::ModelConfig& config, const SampleFormat& format,
                                        std::span<const float> weights,
                                        std::span<const float> statistics) {
  const api::ModelConfig model = config.gpt ? with_layers(config) : config;
  FETTLE_ASSIGN(const NetworkPlan trained, plan_network(model, format));
  NetworkValues made;
  FETTLE_ASSIGN(made.plan, folded_plan(trained, model, format));
  made.weights.resize(static_cast<std::size_t>(made.plan.parameters));
  made.statistics.resize(static_cast<std::size_t>(made.plan.statistics));
  Folder folder(trained, weights, statistics, made);
  for (const LayerPlan& layer : made.plan.layers) folder.take(layer);
  made.plan = with_quantized_inputs(made.plan);
  made.statistics.resize(static_cast<std::size_t>(made.plan.statistics));
  return made;
}

Status check_quantizable(const api::ModelConfig& model, const SampleFormat& format) {
  FETTLE_ASSIGN(const NetworkPlan plan, plan_network(model, format));
  const auto can = [](const LayerPlan& layer) { return computes_in_bytes(layer.type); };
  if (std::ranges::any_of(plan.layers, can)) return success();
  return invalid("training.quantize has nothing to do: the model has no linear or conv layer");
}

bool is_quantized(const NetworkPlan& plan, const LayerPlan& layer) {
  return computes_in_bytes(layer.type) && layer.source != kNetworkInput &&
         plan.layer(layer.source).type == LayerType::kQuantize;
}

std::vector<float> ranges_of(const NetworkPlan& plan, std::span<const float> statistics) {
  std::vector<float> ranges;
  for (const LayerPlan& layer : plan.layers) {
    const auto at = statistics.begin() + layer.range.offset;
    ranges.insert(ranges.end(), at, at + layer.range.count);
  }
  return ranges;
}

Status set_ranges(std::span<const float> ranges, const NetworkPlan& plan,
                  std::span<float> statistics) {
  std::size_t next = 0;
  for (const LayerPlan& layer : plan.layers) {
    const auto count = static_cast<std::size_t>(layer.range.count);
    if (count > ranges.size() - next) return invalid("there are too few ranges for the layers");
    std::ranges::copy(ranges.subspan(next, count), statistics.begin() + layer.range.offset);
    next += count;
  }
  return next == ranges.size() ? success() : invalid("there are more ranges than layers");
}

std::int64_t int8_bytes(const NetworkPlan& plan) {
  constexpr std::int64_t kFloat = sizeof(float);
  std::int64_t bytes = 0;
  for (const LayerPlan& layer : plan.layers) {
    const std::int64_t others = layer.biases.count + layer.positions.count +
                                layer.running_mean.count + layer.running_variance.count;
    bytes += others * kFloat;
    bytes += is_quantized(plan, layer) ? layer.weights.count + layer.output.channels * kFloat
                                       : layer.weights.count * kFloat;
  }
  return bytes;
}

}  // namespace fettle::trainer
