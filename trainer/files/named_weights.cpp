#include "trainer/files/named_weights.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using kernels::ImageShape;

bool has_pixels(const ImageShape& shape) { return shape.height * shape.width > 1; }

const ImageShape& shape_of(const NetworkPlan& plan, std::int64_t layer) {
  return layer == kNetworkInput ? plan.input : plan.layer(layer).output;
}

// Whether the layer gives each number's own result in that number's place.
bool is_elementwise(const LayerPlan& layer) {
  return layer.type == LayerType::kRelu || layer.type == LayerType::kGelu ||
         layer.type == LayerType::kDropout || layer.type == LayerType::kQuantize;
}

// Whether `to` takes the image that `from` gives as a plain list.
bool flattens(const NetworkPlan& plan, std::int64_t from, const LayerPlan& to) {
  if (plan.tokens || !has_pixels(shape_of(plan, from))) return false;
  return to.type == LayerType::kLinear || !has_pixels(to.input);
}

// Whether only linear layers depend on the order of the list that `layer` takes.
bool only_for_linear(const NetworkPlan& plan, const LayerPlan& layer) {
  if (layer.type == LayerType::kLinear) return true;
  if (!is_elementwise(layer)) return false;
  const std::int64_t self = &layer - plan.layers.data();
  if (self + 1 == std::ssize(plan.layers)) return false;  // the logits
  return std::ranges::all_of(plan.layers, [&](const LayerPlan& reader) {
    if (reader.type == LayerType::kAdd && reader.shortcut == self) return false;
    return reader.source != self || only_for_linear(plan, reader);
  });
}

// The image whose flattened list a linear layer takes; of one pixel: none.
ImageShape flattened_image(const NetworkPlan& plan, const LayerPlan& linear) {
  const LayerPlan* reader = &linear;
  while (flattening_of_source(plan, *reader) == Flattening::kNone) {
    if (reader->source == kNetworkInput || plan.tokens) return {};
    reader = &plan.layer(reader->source);
    if (!is_elementwise(*reader)) return {};
  }
  if (flattening_of_source(plan, *reader) != Flattening::kChannelsFirst) return {};
  return shape_of(plan, reader->source);
}

// ---- The tensors of a layer --------------------------------------------------------------------

class Namer {
 public:
  explicit Namer(const NetworkPlan& plan) : plan_(plan) {}

  std::vector<NamedWeight> run() {
    for (const LayerPlan& layer : plan_.layers) take(layer);
    return std::move(weights_);
  }

 private:
  void take(const LayerPlan& layer) {
    switch (layer.type) {
      case LayerType::kLinear:
        return take_linear(layer);
      case LayerType::kConv:
        return take_conv(layer);
      case LayerType::kEmbedding:
        add(layer, "token.weight", {layer.vocabulary, layer.output.channels}, layer.weights);
        add(layer, "position.weight", {layer.output.height, layer.output.channels},
            layer.positions);
        return;
      default:
        return take_norm(layer);
    }
  }

  void take_linear(const LayerPlan& layer) {
    const std::int64_t outputs = layer.output.channels;
    NamedWeight& weight =
        add(layer, "weight", {outputs, layer.weights.count / outputs}, layer.weights);
    if (const ImageShape image = flattened_image(plan_, layer); has_pixels(image)) {
      weight.pixels = image.height * image.width;
      weight.channels = image.channels;
    }
    add_bias(layer);
  }

  void take_conv(const LayerPlan& layer) {
    const std::int64_t inputs = layer.input.channels;
    NamedWeight& weight = add(
        layer, "weight", {layer.output.channels, inputs, layer.kernel_height, layer.kernel_width},
        layer.weights);
    weight.pixels = layer.kernel_height * layer.kernel_width;
    weight.channels = inputs;
    add_bias(layer);
  }

  void take_norm(const LayerPlan& layer) {
    if (layer.weights.count > 0) add(layer, "weight", {layer.weights.count}, layer.weights);
    add_bias(layer);
    if (layer.running_mean.count == 0) return;
    add(layer, "running_mean", {layer.running_mean.count}, layer.running_mean).of_statistics = true;
    add(layer, "running_var", {layer.running_variance.count}, layer.running_variance)
        .of_statistics = true;
  }

  void add_bias(const LayerPlan& layer) {
    if (layer.biases.count > 0) add(layer, "bias", {layer.biases.count}, layer.biases);
  }

  NamedWeight& add(const LayerPlan& layer, const char* name, std::vector<std::int64_t> shape,
                   const Block& block) {
    NamedWeight& weight = weights_.emplace_back();
    weight.name = tensor_name(layer, name);
    weight.shape = std::move(shape);
    weight.block = block;
    return weight;
  }

  const NetworkPlan& plan_;
  std::vector<NamedWeight> weights_;
};

}  // namespace

std::string tensor_name(const LayerPlan& layer, const char* tensor) {
  return "layers." + std::to_string(layer.index) + "." + tensor;
}

std::vector<NamedWeight> named_weights(const NetworkPlan& plan) { return Namer(plan).run(); }

std::vector<float> values_of(const NamedWeight& weight, std::span<const float> array) {
  const auto from = array.subspan(static_cast<std::size_t>(weight.block.offset),
                                  static_cast<std::size_t>(weight.block.count));
  std::vector<float> values;
  values.reserve(from.size());
  const auto pixels = static_cast<std::size_t>(weight.pixels);
  const auto channels = static_cast<std::size_t>(weight.channels);
  if (pixels == 1 || channels == 1) return {from.begin(), from.end()};
  for (std::size_t row = 0; row < from.size(); row += pixels * channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = 0; p < pixels; ++p) values.push_back(from[row + p * channels + c]);
    }
  }
  return values;
}

void place_values(const NamedWeight& weight, std::span<const float> values,
                  std::span<float> array) {
  CHECK(std::ssize(values) == weight.block.count, "the values of another tensor");
  const auto to = array.subspan(static_cast<std::size_t>(weight.block.offset), values.size());
  const auto pixels = static_cast<std::size_t>(weight.pixels);
  const auto channels = static_cast<std::size_t>(weight.channels);
  std::size_t from = 0;
  for (std::size_t row = 0; row < values.size(); row += pixels * channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = 0; p < pixels; ++p) to[row + p * channels + c] = values[from++];
    }
  }
}

Flattening flattening_of_source(const NetworkPlan& plan, const LayerPlan& layer) {
  if (!flattens(plan, layer.source, layer)) return Flattening::kNone;
  return only_for_linear(plan, layer) ? Flattening::kChannelsFirst : Flattening::kChannelsLast;
}

Flattening flattening_of_shortcut(const NetworkPlan& plan, const LayerPlan& add) {
  return flattens(plan, add.shortcut, add) ? Flattening::kChannelsLast : Flattening::kNone;
}

}  // namespace fettle::trainer
