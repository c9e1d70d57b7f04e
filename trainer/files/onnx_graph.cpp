#include "trainer/files/onnx_graph.h"

namespace fettle::trainer {

namespace onnx {
namespace {

// Numbers of onnx.proto: fields of its messages, and types of attributes.
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

ProtobufWriter attribute(const char* name, std::int64_t type) {
  ProtobufWriter out;
  out.bytes(attribute_field::kName, name).integer(attribute_field::kType, type);
  return out;
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

}  // namespace

ProtobufWriter real(const char* name, float value) {
  return attribute(name, attribute_type::kReal).real(attribute_field::kReal, value);
}
ProtobufWriter integer(const char* name, std::int64_t value) {
  return attribute(name, attribute_type::kInteger).integer(attribute_field::kInteger, value);
}
ProtobufWriter integers(const char* name, const Sides& values) {
  return attribute(name, attribute_type::kIntegers).integers(attribute_field::kIntegers, values);
}

}  // namespace onnx

void OnnxGraph::add_tensor(const std::string& name, std::int64_t type, const onnx::Sides& sides,
                           const std::string& raw) {
  ProtobufWriter tensor;
  tensor.integers(onnx::tensor_field::kSides, sides)
      .integer(onnx::tensor_field::kType, type)
      .bytes(onnx::tensor_field::kName, name)
      .bytes(onnx::tensor_field::kRaw, raw);
  graph_.message(onnx::graph_field::kInitializers, tensor);
}

std::string OnnxGraph::number(float value) {
  const std::string name = "number." + std::to_string(numbers_++);
  add_tensor(name, onnx::element_type::kFloat, {},
             onnx::raw_bytes(std::span<const float>(&value, 1)));
  return name;
}

std::string OnnxGraph::byte(std::uint8_t value) {
  const std::string name = "number." + std::to_string(numbers_++);
  add_tensor(name, onnx::element_type::kByte, {}, std::string(1, static_cast<char>(value)));
  return name;
}

std::string OnnxGraph::integers_tensor(const onnx::Sides& values) {
  const std::string name = "numbers." + std::to_string(numbers_++);
  add_tensor(name, onnx::element_type::kInt64, {std::ssize(values)},
             onnx::raw_bytes(std::span<const std::int64_t>(values)));
  return name;
}

void OnnxGraph::add_node(const char* op, const onnx::Names& inputs, const onnx::Names& outputs,
                         const std::vector<ProtobufWriter>& attributes) {
  namespace field = onnx::node_field;
  ProtobufWriter node;
  for (const std::string& input : inputs) node.bytes(field::kInputs, input);
  for (const std::string& output : outputs) node.bytes(field::kOutputs, output);
  node.bytes(field::kName, outputs.front()).bytes(field::kOperator, op);
  for (const ProtobufWriter& one : attributes) node.message(field::kAttributes, one);
  graph_.message(onnx::graph_field::kNodes, node);
}

std::string OnnxGraph::add(const char* op, const onnx::Names& inputs,
                           const std::vector<ProtobufWriter>& attributes, std::string name) {
  if (name.empty()) name = next_name();
  add_node(op, inputs, {name}, attributes);
  return name;
}

std::string OnnxGraph::transpose(const std::string& x, const onnx::Sides& order) {
  return add("Transpose", {x}, {onnx::integers("perm", order)});
}

void OnnxGraph::finish(std::int64_t input_type, const onnx::Sides& input,
                       const onnx::Sides& output) {
  graph_.bytes(onnx::graph_field::kName, "network");
  graph_.message(onnx::graph_field::kInputs, onnx::value_info("input", input_type, input));
  graph_.message(onnx::graph_field::kOutputs,
                 onnx::value_info("logits", onnx::element_type::kFloat, output));
}

}  // namespace fettle::trainer
