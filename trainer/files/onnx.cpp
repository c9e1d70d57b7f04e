#include "trainer/files/onnx.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "trainer/files/graph.h"
#include "trainer/files/named_weights.h"
#include "trainer/files/protobuf.h"

namespace fettle::trainer {
namespace {

using Names = std::vector<std::string>;
using Sides = std::vector<std::int64_t>;

constexpr std::int64_t kIrVersion = 8;  // the one of opset 17
constexpr std::int64_t kOpset = 17;
constexpr float kEpsilon = 1e-5F;  // of all norms
constexpr std::int64_t kMostBytes = std::int64_t{1} << 31U;
// Room for names and nodes.
constexpr std::int64_t kBesideWeights = 1 << 20U;

// Numbers of onnx.proto: fields of its messages, types of elements and of attributes.
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
namespace graph_field {
enum : int { kNodes = 1, kName = 2, kInitializers = 5, kInputs = 11, kOutputs = 12 };
}
namespace node_field {
enum : int { kInputs = 1, kOutputs = 2, kName = 3, kOperator = 4, kAttributes = 5 };
}
namespace attribute_field {
enum : int { kName = 1, kReal = 2, kInteger = 3, kIntegers = 8, kType = 20 };
}
namespace tensor_field {
enum : int { kSides = 1, kType = 2, kName = 8, kRaw = 9 };
}
namespace attribute_type {
enum : std::int64_t { kReal = 1, kInteger = 2, kIntegers = 7 };
}
namespace element_type {
enum : std::int64_t { kFloat = 1, kByte = 2, kInt64 = 7 };
}

ProtobufWriter attribute(const char* name, std::int64_t type) {
  ProtobufWriter out;
  out.bytes(attribute_field::kName, name).integer(attribute_field::kType, type);
  return out;
}
ProtobufWriter real(const char* name, float value) {
  return attribute(name, attribute_type::kReal).real(attribute_field::kReal, value);
}
ProtobufWriter integer(const char* name, std::int64_t value) {
  return attribute(name, attribute_type::kInteger).integer(attribute_field::kInteger, value);
}
ProtobufWriter integers(const char* name, const Sides& values) {
  return attribute(name, attribute_type::kIntegers).integers(attribute_field::kIntegers, values);
}

template <class T>
std::string raw_bytes(std::span<const T> values) {
  static_assert(std::endian::native == std::endian::little, "ONNX keeps little-endian bytes");
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// An input or output: its batch is free, the other sides are given.
ProtobufWriter value_info(const char* name, std::int64_t type, const Sides& sides) {
  ProtobufWriter shape;
  shape.message(1, ProtobufWriter().bytes(2, "batch"));
  for (const std::int64_t side : sides) shape.message(1, ProtobufWriter().integer(1, side));
  ProtobufWriter tensor;
  tensor.integer(1, type).message(2, shape);
  ProtobufWriter out;
  out.bytes(1, name).message(2, ProtobufWriter().message(1, tensor));
  return out;
}

class OnnxWriter {
 public:
  OnnxWriter(const SavedModel& model, const Graph& graph) : model_(model), plan_(model.plan) {
    add_weights();
    values_.push_back(normalised());
    for (const GraphStep& step : graph.steps) values_.push_back(take(step));
    add("Identity", {values_.back()}, {}, "logits");
    finish();
  }

  ProtobufWriter take_graph() { return std::move(graph_); }

 private:
  // ---- Tensors and nodes ----

  void add_tensor(const std::string& name, std::int64_t type, const Sides& sides,
                  const std::string& raw) {
    ProtobufWriter tensor;
    tensor.integers(tensor_field::kSides, sides)
        .integer(tensor_field::kType, type)
        .bytes(tensor_field::kName, name)
        .bytes(tensor_field::kRaw, raw);
    graph_.message(graph_field::kInitializers, tensor);
  }

  std::string number(float value) {
    const std::string name = "number." + std::to_string(numbers_++);
    add_tensor(name, element_type::kFloat, {}, raw_bytes(std::span<const float>(&value, 1)));
    return name;
  }

  std::string integers_tensor(const Sides& values) {
    const std::string name = "numbers." + std::to_string(numbers_++);
    add_tensor(name, element_type::kInt64, {std::ssize(values)},
               raw_bytes(std::span<const std::int64_t>(values)));
    return name;
  }

  void add_weights() {
    for (const NamedWeight& weight : named_weights(plan_)) {
      const std::vector<float> values =
          values_of(weight, weight.of_statistics ? model_.statistics : model_.weights);
      add_tensor(weight.name, element_type::kFloat, weight.shape,
                 raw_bytes(std::span<const float>(values)));
    }
  }

  void add_node(const char* op, const Names& inputs, const Names& outputs,
                const std::vector<ProtobufWriter>& attributes) {
    ProtobufWriter node;
    for (const std::string& input : inputs) node.bytes(node_field::kInputs, input);
    for (const std::string& output : outputs) node.bytes(node_field::kOutputs, output);
    node.bytes(node_field::kName, outputs.front()).bytes(node_field::kOperator, op);
    for (const ProtobufWriter& one : attributes) node.message(node_field::kAttributes, one);
    graph_.message(graph_field::kNodes, node);
  }

  // Adds a node with one output, whose name it returns.
  std::string add(const char* op, const Names& inputs,
                  const std::vector<ProtobufWriter>& attributes = {}, std::string name = "") {
    if (name.empty()) name = "value." + std::to_string(count_++);
    add_node(op, inputs, {name}, attributes);
    return name;
  }

  std::string transpose(const std::string& x, const Sides& order) {
    return add("Transpose", {x}, {integers("perm", order)});
  }

  // ---- The network ----

  std::string normalised() {
    if (plan_.tokens) return "input";
    std::string x = "input";
    if (model_.pixels == PixelType::kByte) {
      x = add("Cast", {x}, {integer("to", element_type::kFloat)});
      x = add("Div", {x, number(255)});
    }
    x = add("Sub", {x, number(static_cast<float>(model_.normalize.mean))});
    x = add("Div", {x, number(static_cast<float>(model_.normalize.std))});
    const kernels::ImageShape& shape = plan_.input;
    if (shape.height * shape.width == 1) return add("Flatten", {x}, {integer("axis", 1)});
    return transpose(x, {0, 3, 1, 2});
  }

  std::string take(const GraphStep& step) {
    const LayerPlan& layer = plan_.layer(step.layer);
    const std::string& x = values_[static_cast<std::size_t>(step.inputs[0])];
    switch (step.op) {
      case GraphOp::kConv:
        return take_conv(layer, x);
      case GraphOp::kLinear:
        return take_linear(layer, x);
      case GraphOp::kBatchNorm:
        return add("BatchNormalization",
                   {x, tensor_name(layer, "weight"), tensor_name(layer, "bias"),
                    tensor_name(layer, "running_mean"), tensor_name(layer, "running_var")},
                   {real("epsilon", kEpsilon)});
      case GraphOp::kLayerNorm:
        return add("LayerNormalization",
                   {x, tensor_name(layer, "weight"), tensor_name(layer, "bias")},
                   {integer("axis", -1), real("epsilon", kEpsilon)});
      case GraphOp::kRmsNorm:
        return take_rms_norm(layer, x);
      case GraphOp::kRelu:
        return add("Relu", {x});
      case GraphOp::kGelu:
        return layer.gelu == kernels::GeluForm::kTanh ? take_tanh_gelu(x) : take_gelu(x);
      case GraphOp::kMaxPool:
        return add("MaxPool", {x}, pool(layer));
      case GraphOp::kAveragePool:
        return add("AveragePool", {x}, pool(layer));
      case GraphOp::kGlobalPool:
        return add("Flatten", {add("GlobalAveragePool", {x})}, {integer("axis", 1)});
      case GraphOp::kEmbedding:
        return add("Add", {add("Gather", {tensor_name(layer, "token.weight"), x}),
                           tensor_name(layer, "position.weight")});
      case GraphOp::kHead:
        return add("MatMul",
                   {x, transpose(tensor_name(plan_.layers.front(), "token.weight"), {1, 0})});
      case GraphOp::kAttention:
        return take_attention(layer, x);
      case GraphOp::kAdd:
        return add("Add", {x, values_[static_cast<std::size_t>(step.inputs[1])]});
      case GraphOp::kChannelsLast:
        return transpose(x, {0, 2, 3, 1});
      case GraphOp::kChannelsFirst:
        return transpose(x, {0, 3, 1, 2});
      case GraphOp::kFlatten:
        return add("Flatten", {x}, {integer("axis", 1)});
      case GraphOp::kImage:
        return add("Unsqueeze", {x, integers_tensor({2, 3})});
    }
    return x;
  }

  std::string take_conv(const LayerPlan& layer, const std::string& x) {
    Names inputs = {x, tensor_name(layer, "weight")};
    if (layer.bias) inputs.push_back(tensor_name(layer, "bias"));
    const std::int64_t padding = layer.padding;
    return add("Conv", inputs,
               {integers("kernel_shape", {layer.kernel_height, layer.kernel_width}),
                integers("strides", {layer.stride, layer.stride}),
                integers("pads", {padding, padding, padding, padding})});
  }

  // Gemm takes a list; a sequence has one axis more.
  std::string take_linear(const LayerPlan& layer, const std::string& x) {
    Names inputs = {x, tensor_name(layer, "weight")};
    if (!plan_.tokens) {
      if (layer.bias) inputs.push_back(tensor_name(layer, "bias"));
      return add("Gemm", inputs, {integer("transB", 1)});
    }
    inputs[1] = transpose(inputs[1], {1, 0});
    const std::string product = add("MatMul", inputs);
    return layer.bias ? add("Add", {product, tensor_name(layer, "bias")}) : product;
  }

  // x / sqrt(mean(x²) + ε) · weight
  std::string take_rms_norm(const LayerPlan& layer, const std::string& x) {
    const std::string mean = add("ReduceMean", {add("Mul", {x, x})}, {integers("axes", {-1})});
    const std::string root = add("Sqrt", {add("Add", {mean, number(kEpsilon)})});
    return add("Mul", {add("Div", {x, root}), tensor_name(layer, "weight")});
  }

  // x/2 · (1 + erf(x/√2))
  std::string take_gelu(const std::string& x) {
    const float factor = 1 / std::numbers::sqrt2_v<float>;
    return half_of(x, add("Erf", {add("Mul", {x, number(factor)})}));
  }

  // x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
  std::string take_tanh_gelu(const std::string& x) {
    const std::string cube = add("Mul", {add("Mul", {x, x}), x});
    const std::string sum = add("Add", {x, add("Mul", {cube, number(0.044715F)})});
    const float factor = std::sqrt(2 / std::numbers::pi_v<float>);
    return half_of(x, add("Tanh", {add("Mul", {sum, number(factor)})}));
  }

  std::string half_of(const std::string& x, const std::string& factor) {
    return add("Mul", {add("Mul", {x, number(0.5F)}), add("Add", {factor, number(1)})});
  }

  static std::vector<ProtobufWriter> pool(const LayerPlan& layer) {
    return {integers("kernel_shape", {layer.kernel_height, layer.kernel_width}),
            integers("strides", {layer.stride, layer.stride})};
  }

  // Causal; x has queries, keys and values side by side.
  std::string take_attention(const LayerPlan& layer, const std::string& x) {
    const std::int64_t units = layer.output.channels;
    const std::int64_t each = units / layer.heads;
    const std::string stem = "value." + std::to_string(count_++);
    const Names parts = {stem + ".q", stem + ".k", stem + ".v"};
    add_node("Split", {x}, parts, {integer("axis", 2)});
    const std::string apart = integers_tensor({0, 0, layer.heads, each});
    const auto heads = [&](const std::string& part, const Sides& order) {
      return transpose(add("Reshape", {part, apart}), order);
    };
    const std::string scores =
        add("MatMul", {heads(parts[0], {0, 2, 1, 3}), heads(parts[1], {0, 2, 3, 1})});
    const float scale = 1 / std::sqrt(static_cast<float>(each));
    const std::string masked =
        add("Add", {add("Mul", {scores, number(scale)}), mask(layer.output.height)});
    const std::string shares = add("Softmax", {masked}, {integer("axis", -1)});
    const std::string mixed = add("MatMul", {shares, heads(parts[2], {0, 2, 1, 3})});
    return add("Reshape", {transpose(mixed, {0, 2, 1, 3}), integers_tensor({0, 0, units})});
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
    add_tensor(name, element_type::kFloat, {tokens, tokens},
               raw_bytes(std::span<const float>(values)));
    return name;
  }

  void finish() {
    const kernels::ImageShape& shape = plan_.input;
    graph_.bytes(graph_field::kName, "network");
    if (plan_.tokens) {
      graph_.message(graph_field::kInputs,
                     value_info("input", element_type::kInt64, {shape.height}));
      graph_.message(graph_field::kOutputs,
                     value_info("logits", element_type::kFloat, {shape.height, plan_.classes}));
      return;
    }
    const bool is_bytes = model_.pixels == PixelType::kByte;
    const std::int64_t type = is_bytes ? element_type::kByte : element_type::kFloat;
    graph_.message(graph_field::kInputs,
                   value_info("input", type, {shape.height, shape.width, shape.channels}));
    graph_.message(graph_field::kOutputs,
                   value_info("logits", element_type::kFloat, {plan_.classes}));
  }

  const SavedModel& model_;
  const NetworkPlan& plan_;
  ProtobufWriter graph_;
  Names values_;  // of the graph
  std::int64_t count_ = 0;
  std::int64_t numbers_ = 0;
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
