// OnnxGraph: the nodes and tensors of an ONNX model, written one after the other. Names that are
// not given are counted. Knows no network: onnx.cpp builds one of it. One thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/files/protobuf.h"

namespace fettle::trainer {

namespace onnx {

using Names = std::vector<std::string>;
using Sides = std::vector<std::int64_t>;

// Numbers of onnx.proto: types of elements.
namespace element_type {
enum : std::int64_t { kFloat = 1, kByte = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7 };
}

// Attributes of a node.
ProtobufWriter real(const char* name, float value);
ProtobufWriter integer(const char* name, std::int64_t value);
ProtobufWriter integers(const char* name, const Sides& values);

template <class T>
std::string raw_bytes(std::span<const T> values) {
  static_assert(std::endian::native == std::endian::little, "ONNX keeps little-endian bytes");
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace onnx

class OnnxGraph {
 public:
  void add_tensor(const std::string& name, std::int64_t type, const onnx::Sides& sides,
                  const std::string& raw);
  // Scalars and a list as tensors; they return the name.
  std::string number(float value);
  std::string byte(std::uint8_t value);
  std::string integers_tensor(const onnx::Sides& values);

  void add_node(const char* op, const onnx::Names& inputs, const onnx::Names& outputs,
                const std::vector<ProtobufWriter>& attributes);
  // Adds a node with one output, whose name it returns.
  std::string add(const char* op, const onnx::Names& inputs,
                  const std::vector<ProtobufWriter>& attributes = {}, std::string name = "");
  std::string transpose(const std::string& x, const onnx::Sides& order);
  // A name for several outputs of a node, which add endings.
  std::string next_name() { return "value." + std::to_string(count_++); }

  // Ends the graph with its input and its output: their batch is free, the other sides are given.
  void finish(std::int64_t input_type, const onnx::Sides& input, const onnx::Sides& output);
  ProtobufWriter take() { return std::move(graph_); }

 private:
  ProtobufWriter graph_;
  std::int64_t count_ = 0;
  std::int64_t numbers_ = 0;
};

}  // namespace fettle::trainer
