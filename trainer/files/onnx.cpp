#include "trainer/files/onnx.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "kernels/quantize/formulas.h"
#include "trainer/files/graph.h"
#include "trainer/files/named_weights.h"
#include "trainer/files/onnx_graph.h"
#include "trainer/files/protobuf.h"
#include "trainer/quantize/quantized_plan.h"
#include "trainer/quantize/weight_grid.h"

namespace fettle::trainer {
namespace {

using onnx::integer;
using onnx::integers;
using onnx::Names;
using onnx::raw_bytes;
using onnx::real;
using onnx::Sides;
namespace element_type = onnx::element_type;

constexpr std::int64_t kIrVersion = 8;  // the one of opset 17
constexpr std::int64_t kOpset = 17;
constexpr float kEpsilon = 1e-5F;  // of all norms
constexpr std::int64_t kMostBytes = std::int64_t{1} << 31U;
// Room for names and nodes.
constexpr std::int64_t kBesideWeights = 1 << 20U;

// Numbers of onnx.proto: fields of its outermost message.
namespace model_field {
enum : int {
  kIr = 1,
  kProducer = 2,
  kProducerVersion = 3,
  kGraph = 7,
  kOpsets = 8,
  kMetadata = 14
};
}

// Tensors that an 8-bit network has as integers.
std::map<std::string, NamedWeight> integer_tensors(const NetworkPlan& plan) {
  std::map<std::string, NamedWeight> found;
  for (NamedWeight& weight : named_weights(plan)) {
    const auto owner = std::ranges::find_if(plan.layers, [&](const LayerPlan& layer) {
      const bool own = weight.block == layer.weights ||
                       (has_integer_bias(layer) && weight.block == layer.biases);
      return is_quantized(plan, layer) && !weight.of_statistics && own;
    });
    if (owner != plan.layers.end()) found.emplace(weight.name, std::move(weight));
  }
  return found;
}

// The values of a tensor in the order of the file.
template <class T>
std::vector<T> in_order_of(const NamedWeight& weight, const std::vector<T>& values) {
  if (weight.pixels == 1) return values;  // 32-bit integers would not all be exact as floats
  NamedWeight alone = weight;
  alone.block.offset = 0;
  const std::vector<float> numbers(values.begin(), values.end());
  const std::vector<float> ordered = values_of(alone, numbers);
  std::vector<T> result;
  result.reserve(ordered.size());
  for (const float value : ordered) result.push_back(static_cast<T>(value));
  return result;
}

// Whether the operation moves numbers and changes none.
bool only_moves(GraphOp op) {
  return op == GraphOp::kChannelsLast || op == GraphOp::kChannelsFirst || op == GraphOp::kFlatten ||
         op == GraphOp::kImage;
}

// The quantize layer that alone reads the result of a step that gives some of its input's numbers,
// perhaps behind other such steps; else nullptr.
const LayerPlan* grid_behind(const Graph& graph, const NetworkPlan& plan, const GraphStep& step) {
  if (step.op != GraphOp::kMaxPool && !only_moves(step.op)) return nullptr;
  const GraphStep* reader = nullptr;
  const auto value = &step - graph.steps.data() + 1;
  for (const GraphStep& other : graph.steps) {
    if (std::ranges::find(other.inputs, value) == other.inputs.end()) continue;
    if (reader != nullptr) return nullptr;
    reader = &other;
  }
  if (reader == nullptr) return nullptr;
  if (reader->op == GraphOp::kQuantize) return &plan.layer(reader->layer);
  return grid_behind(graph, plan, *reader);
}

template <class T>
std::vector<T> transposed(const std::vector<T>& values, std::int64_t rows) {
  const auto height = static_cast<std::size_t>(rows);
  const std::size_t width = values.size() / height;
  std::vector<T> result(values.size());
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t column = 0; column < width; ++column) {
      result[column * height + row] = values[row * width + column];
    }
  }
  return result;
}

class OnnxWriter {
 public:
  OnnxWriter(const SavedModel& model, const Graph& graph)
      : model_(model), plan_(model.plan), steps_(graph), integers_(integer_tensors(model.plan)) {
    add_weights();
    values_.push_back(normalised());
    grids_.push_back(nullptr);
    for (const GraphStep& step : graph.steps) take_step(step);
    graph_.add("Identity", {values_.back()}, {}, "logits");
    finish();
  }

  ProtobufWriter take_graph() { return graph_.take(); }

 private:
  void add_weights() {
    for (const NamedWeight& weight : named_weights(plan_)) {
      if (integers_.contains(weight.name)) continue;
      const std::vector<float> values =
          values_of(weight, weight.of_statistics ? model_.statistics : model_.weights);
      graph_.add_tensor(weight.name, element_type::kFloat, weight.shape,
                        raw_bytes(std::span<const float>(values)));
    }
  }

  // ---- The network ----

  std::string normalised() {
    if (plan_.tokens) return "input";
    std::string x = "input";
    if (model_.pixels == PixelType::kByte) {
      x = graph_.add("Cast", {x}, {integer("to", element_type::kFloat)});
      x = graph_.add("Div", {x, graph_.number(255)});
    }
    x = graph_.add("Sub", {x, graph_.number(static_cast<float>(model_.normalize.mean))});
    x = graph_.add("Div", {x, graph_.number(static_cast<float>(model_.normalize.std))});
    const kernels::ImageShape& shape = plan_.input;
    if (shape.height * shape.width == 1) return graph_.add("Flatten", {x}, {integer("axis", 1)});
    return graph_.transpose(x, {0, 3, 1, 2});
  }

  void take_step(const GraphStep& step) {
    std::string value = take(step);
    const LayerPlan* grid = nullptr;
    if (step.op == GraphOp::kQuantize) grid = &plan_.layer(step.layer);
    if (only_moves(step.op)) grid = grids_[static_cast<std::size_t>(step.inputs[0])];
    // Programs look for these nodes right before a product, so they are repeated; they change no
    // number.
    if (grid != nullptr && only_moves(step.op)) value = take_quantize(*grid, value);
    values_.push_back(std::move(value));
    grids_.push_back(grid);
  }

  // The step's first input. The largest of some numbers on a grid is the largest of them, on the
  // grid: so the layer before a pool ends with the bytes that the layer behind it takes.
  std::string on_later_grid(const GraphStep& step) {
    const std::string& x = values_[static_cast<std::size_t>(step.inputs[0])];
    const LayerPlan* const later = grid_behind(steps_, plan_, step);
    return later == nullptr ? x : take_quantize(*later, x);
  }

  std::string take(const GraphStep& step) {
    const LayerPlan& layer = plan_.layer(step.layer);
    std::string x = on_later_grid(step);
    switch (step.op) {
      case GraphOp::kConv:
        return take_conv(layer, x);
      case GraphOp::kLinear:
        return take_linear(layer, x);
      case GraphOp::kBatchNorm:
        return graph_.add("BatchNormalization",
                          {x, tensor_name(layer, "weight"), tensor_name(layer, "bias"),
                           tensor_name(layer, "running_mean"), tensor_name(layer, "running_var")},
                          {real("epsilon", kEpsilon)});
      case GraphOp::kLayerNorm:
        return graph_.add("LayerNormalization",
                          {x, tensor_name(layer, "weight"), tensor_name(layer, "bias")},
                          {integer("axis", -1), real("epsilon", kEpsilon)});
      case GraphOp::kRmsNorm:
        return take_rms_norm(layer, x);
      case GraphOp::kQuantize:
        return take_quantize(layer, x);
      case GraphOp::kRelu:
        return graph_.add("Relu", {x});
      case GraphOp::kGelu:
        return layer.gelu == kernels::GeluForm::kTanh ? take_tanh_gelu(x) : take_gelu(x);
      case GraphOp::kMaxPool:
        return graph_.add("MaxPool", {x}, pool(layer));
      case GraphOp::kAveragePool:
        return graph_.add("AveragePool", {x}, pool(layer));
      case GraphOp::kGlobalPool:
        return graph_.add("Flatten", {graph_.add("GlobalAveragePool", {x})}, {integer("axis", 1)});
      case GraphOp::kEmbedding:
        return graph_.add("Add", {graph_.add("Gather", {tensor_name(layer, "token.weight"), x}),
                                  tensor_name(layer, "position.weight")});
      case GraphOp::kHead:
        return graph_.add(
            "MatMul",
            {x, graph_.transpose(tensor_name(plan_.layers.front(), "token.weight"), {1, 0})});
      case GraphOp::kAttention:
        return take_attention(layer, x);
      case GraphOp::kAdd:
        return graph_.add("Add", {x, values_[static_cast<std::size_t>(step.inputs[1])]});
      case GraphOp::kChannelsLast:
        return graph_.transpose(x, {0, 2, 3, 1});
      case GraphOp::kChannelsFirst:
        return graph_.transpose(x, {0, 3, 1, 2});
      case GraphOp::kFlatten:
        return graph_.add("Flatten", {x}, {integer("axis", 1)});
      case GraphOp::kImage:
        return graph_.add("Unsqueeze", {x, graph_.integers_tensor({2, 3})});
    }
    return x;
  }

  std::string take_conv(const LayerPlan& layer, const std::string& x) {
    Names inputs = {x, tensor_name(layer, "weight")};
    if (layer.bias) inputs.push_back(tensor_name(layer, "bias"));
    if (is_quantized(plan_, layer)) {
      const IntegerWeights integers = integers_of(layer);
      inputs[1] = dequantized(layer, "weight", integers.weights, integers.scales, /*axis=*/0);
      if (layer.bias) {
        inputs[2] = dequantized(layer, "bias", integers.biases, integers.bias_scales, /*axis=*/0);
      }
    }
    const std::int64_t padding = layer.padding;
    return graph_.add("Conv", inputs,
                      {integers("kernel_shape", {layer.kernel_height, layer.kernel_width}),
                       integers("strides", {layer.stride, layer.stride}),
                       integers("pads", {padding, padding, padding, padding})});
  }

  // ---- 8 bits ----

  // As a byte, and back. Programs that fuse the two compute with the byte in between; the end of
  // its range does a ReLU's work.
  std::string take_quantize(const LayerPlan& layer, const std::string& x) {
    const float* const range = model_.statistics.data() + layer.range.offset;
    const kernels::ByteGrid grid = kernels::byte_grid(range[0], range[1]);
    const std::string scale = graph_.number(grid.scale);
    const std::string zero = graph_.byte(static_cast<std::uint8_t>(grid.zero));
    const std::string byte = graph_.add("QuantizeLinear", {x, scale, zero});
    return graph_.add("DequantizeLinear", {byte, scale, zero});
  }

  std::string take_integer_linear(const LayerPlan& layer, const std::string& x) {
    const IntegerWeights integers = integers_of(layer);
    Names inputs = {x, dequantized(layer, "weight", integers.weights, integers.scales, /*axis=*/1)};
    if (has_integer_bias(layer)) {
      inputs.push_back(
          dequantized(layer, "bias", integers.biases, integers.bias_scales, /*axis=*/0));
    }
    if (!plan_.tokens) return graph_.add("Gemm", inputs);
    const std::string product = graph_.add("MatMul", inputs);
    return layer.bias ? graph_.add("Add", {product, tensor_name(layer, "bias")}) : product;
  }

  IntegerWeights integers_of(const LayerPlan& layer) const {
    const auto config = model_.config.training.quantize.value_or(api::QuantizeConfig{});
    return integer_weights(plan_, layer, model_.weights, model_.statistics, config.weight_bits);
  }

  // Integers of the layer's tensor, with a scale for each output. `axis`: of the outputs in the
  // file. Returns the value that they stand for.
  template <class T>
  std::string dequantized(const LayerPlan& layer, const char* tensor, const std::vector<T>& values,
                          const std::vector<float>& scales, std::int64_t axis) {
    const std::string name = tensor_name(layer, tensor);
    const NamedWeight& as_named = integers_.at(name);
    const std::int64_t type = sizeof(T) == 1 ? element_type::kInt8 : element_type::kInt32;
    const std::int64_t outputs = std::ssize(scales);
    Sides sides = as_named.shape;
    std::vector<T> ordered = in_order_of(as_named, values);
    if (axis == 1) {
      sides = {as_named.shape[1], as_named.shape[0]};
      ordered = transposed(ordered, outputs);
    }
    graph_.add_tensor(name, type, sides, raw_bytes(std::span<const T>(ordered)));
    graph_.add_tensor(name + "_scale", element_type::kFloat, {outputs},
                      raw_bytes(std::span<const float>(scales)));
    const std::vector<T> zeros(scales.size());
    graph_.add_tensor(name + "_zero_point", type, {outputs}, raw_bytes(std::span<const T>(zeros)));
    return graph_.add("DequantizeLinear", {name, name + "_scale", name + "_zero_point"},
                      {integer("axis", axis)});
  }

  // Gemm takes a list; a sequence has one axis more.
  std::string take_linear(const LayerPlan& layer, const std::string& x) {
    Names inputs = {x, tensor_name(layer, "weight")};
    if (is_quantized(plan_, layer)) return take_integer_linear(layer, x);
    if (!plan_.tokens) {
      if (layer.bias) inputs.push_back(tensor_name(layer, "bias"));
      return graph_.add("Gemm", inputs, {integer("transB", 1)});
    }
    inputs[1] = graph_.transpose(inputs[1], {1, 0});
    const std::string product = graph_.add("MatMul", inputs);
    return layer.bias ? graph_.add("Add", {product, tensor_name(layer, "bias")}) : product;
  }

  // x / sqrt(mean(x²) + ε) · weight
  std::string take_rms_norm(const LayerPlan& layer, const std::string& x) {
    const std::string mean =
        graph_.add("ReduceMean", {graph_.add("Mul", {x, x})}, {integers("axes", {-1})});
    const std::string root =
        graph_.add("Sqrt", {graph_.add("Add", {mean, graph_.number(kEpsilon)})});
    return graph_.add("Mul", {graph_.add("Div", {x, root}), tensor_name(layer, "weight")});
  }

  // x/2 · (1 + erf(x/√2))
  std::string take_gelu(const std::string& x) {
    const float factor = 1 / std::numbers::sqrt2_v<float>;
    return half_of(x, graph_.add("Erf", {graph_.add("Mul", {x, graph_.number(factor)})}));
  }

  // x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
  std::string take_tanh_gelu(const std::string& x) {
    const std::string cube = graph_.add("Mul", {graph_.add("Mul", {x, x}), x});
    const std::string sum =
        graph_.add("Add", {x, graph_.add("Mul", {cube, graph_.number(0.044715F)})});
    const float factor = std::sqrt(2 / std::numbers::pi_v<float>);
    return half_of(x, graph_.add("Tanh", {graph_.add("Mul", {sum, graph_.number(factor)})}));
  }

  std::string half_of(const std::string& x, const std::string& factor) {
    return graph_.add("Mul", {graph_.add("Mul", {x, graph_.number(0.5F)}),
                              graph_.add("Add", {factor, graph_.number(1)})});
  }

  static std::vector<ProtobufWriter> pool(const LayerPlan& layer) {
    return {integers("kernel_shape", {layer.kernel_height, layer.kernel_width}),
            integers("strides", {layer.stride, layer.stride})};
  }

  // Causal; x has queries, keys and values side by side.
  std::string take_attention(const LayerPlan& layer, const std::string& x) {
    const std::int64_t units = layer.output.channels;
    const std::int64_t each = units / layer.heads;
    const std::string stem = graph_.next_name();
    const Names parts = {stem + ".q", stem + ".k", stem + ".v"};
    graph_.add_node("Split", {x}, parts, {integer("axis", 2)});
    const std::string apart = graph_.integers_tensor({0, 0, layer.heads, each});
    const auto heads = [&](const std::string& part, const Sides& order) {
      return graph_.transpose(graph_.add("Reshape", {part, apart}), order);
    };
    const std::string scores =
        graph_.add("MatMul", {heads(parts[0], {0, 2, 1, 3}), heads(parts[1], {0, 2, 3, 1})});
    const float scale = 1 / std::sqrt(static_cast<float>(each));
    const std::string masked = graph_.add(
        "Add", {graph_.add("Mul", {scores, graph_.number(scale)}), mask(layer.output.height)});
    const std::string shares = graph_.add("Softmax", {masked}, {integer("axis", -1)});
    const std::string mixed = graph_.add("MatMul", {shares, heads(parts[2], {0, 2, 1, 3})});
    return graph_.add(
        "Reshape", {graph_.transpose(mixed, {0, 2, 1, 3}), graph_.integers_tensor({0, 0, units})});
  }

  // Added to scores: no token sees a later one. All layers share it.
  std::string mask(std::int64_t tokens) {
    const std::string name = "mask";
    if (std::exchange(has_mask_, true)) return name;
    std::vector<float> values(static_cast<std::size_t>(tokens * tokens));
    for (std::int64_t row = 0; row < tokens; ++row) {
      for (std::int64_t column = row + 1; column < tokens; ++column) {
        values[static_cast<std::size_t>(row * tokens + column)] =
            -std::numeric_limits<float>::infinity();
      }
    }
    graph_.add_tensor(name, element_type::kFloat, {tokens, tokens},
                      raw_bytes(std::span<const float>(values)));
    return name;
  }

  void finish() {
    const kernels::ImageShape& shape = plan_.input;
    if (plan_.tokens) {
      return graph_.finish(element_type::kInt64, {shape.height}, {shape.height, plan_.classes});
    }
    const bool is_bytes = model_.pixels == PixelType::kByte;
    graph_.finish(is_bytes ? element_type::kByte : element_type::kFloat,
                  {shape.height, shape.width, shape.channels}, {plan_.classes});
  }

  const SavedModel& model_;
  const NetworkPlan& plan_;
  const Graph& steps_;
  const std::map<std::string, NamedWeight> integers_;  // tensors of layers in 8 bits, by name
  OnnxGraph graph_;
  Names values_;                         // of the graph
  std::vector<const LayerPlan*> grids_;  // by value: the quantize layer on whose grid it is
  bool has_mask_ = false;
};

}  // namespace

Result<std::string> onnx_model(const SavedModel& model, const std::string& version,
                               const std::string& description) {
  const std::int64_t weights =
      (model.plan.trained() + model.plan.statistics) * static_cast<std::int64_t>(sizeof(float));
  if (weights + kBesideWeights > kMostBytes) {
    return invalid("the weights take " + std::to_string(weights >> 20U) +
                   " MiB, and an ONNX file holds at most 2048; export them as safetensors");
  }
  FETTLE_ASSIGN(const Graph graph, graph_of(model.plan));
  ProtobufWriter opset;
  opset.bytes(1, "").integer(2, kOpset);
  ProtobufWriter metadata;
  metadata.bytes(1, "fettle").bytes(2, description);
  ProtobufWriter out;
  out.integer(model_field::kIr, kIrVersion)
      .bytes(model_field::kProducer, "fettle")
      .bytes(model_field::kProducerVersion, version)
      .message(model_field::kGraph, OnnxWriter(model, graph).take_graph())
      .message(model_field::kOpsets, opset)
      .message(model_field::kMetadata, metadata);
  return out.take();
}

}  // namespace fettle::trainer
