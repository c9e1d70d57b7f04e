#include "kernels/onednn/weighted.h"

#include <array>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "kernels/aligned.h"
#include "kernels/fast_operations.h"

namespace fettle::kernels {
namespace {

using dnnl::memory;
using Bytes = AlignedArray<std::byte>;

// One engine and stream for each operation: both are cheap handles, and threads share nothing.
struct Device {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

std::int64_t bytes_of(const memory::desc& layout) {
  return static_cast<std::int64_t>(layout.get_size());
}

// oneDNN 2.6 without AVX-512 reads and writes up to a vector of 32 bytes behind the gradient of a
// convolution's weights (seen by valgrind).
constexpr std::int64_t kSlackBytes = 256;

// A memory object with its own storage.
struct Block {
  Block() = default;
  Block(const Device& device, const memory::desc& layout)
      : storage(bytes_of(layout) + kSlackBytes), handle(layout, device.engine, storage.data()) {}
  std::int64_t bytes() const { return bytes_of(handle.get_desc()); }
  Bytes storage;
  memory handle;
};

// Descriptions of a convolution or a product for oneDNN: sizes, layouts, primitives. oneDNN names
// the sizes of images N, C, H, W and of weights O, I, H, W; the format tags give their order in
// memory. All functions throw dnnl::error.
class ConvKind {
 public:
  using Shape = ConvShape;
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;
  static constexpr const char* kName = "convolution";
  static constexpr auto kWeights = memory::format_tag::ohwi;

  explicit ConvKind(const ConvShape& shape) : shape_(shape) {}

  memory::dims weight_sizes() const {
    return {shape_.channels, shape_.input.channels, shape_.kernel, shape_.kernel};
  }
  std::int64_t outputs() const { return shape_.output().size(); }  // of a sample
  std::int64_t biases() const { return shape_.channels; }
  memory::desc input(std::int64_t samples, memory::data_type type) const {
    return images(samples, shape_.input, type);
  }
  memory::desc output(std::int64_t samples, memory::data_type type) const {
    return images(samples, shape_.output(), type);
  }

  Forward::desc forward(const memory::desc& x, const memory::desc& weights,
                        const memory::desc& bias, const memory::desc& y) const {
    return {dnnl::prop_kind::forward_training,
            dnnl::algorithm::convolution_direct,
            x,
            weights,
            bias,
            y,
            strides(),
            padding(),
            padding()};
  }
  BackwardData::desc backward_data(const memory::desc& dx, const memory::desc& weights,
                                   const memory::desc& dy) const {
    return {dnnl::algorithm::convolution_direct, dx, weights, dy, strides(), padding(), padding()};
  }
  BackwardWeights::desc backward_weights(const memory::desc& x, const memory::desc& dw,
                                         const memory::desc& db, const memory::desc& dy) const {
    return {dnnl::algorithm::convolution_direct, x, dw, db, dy, strides(), padding(), padding()};
  }

 private:
  static memory::desc images(std::int64_t samples, const ImageShape& image,
                             memory::data_type type) {
    return {{samples, image.channels, image.height, image.width}, type, memory::format_tag::nhwc};
  }
  memory::dims strides() const { return {shape_.stride, shape_.stride}; }
  memory::dims padding() const { return {shape_.padding, shape_.padding}; }

  const ConvShape shape_;
};

class ProductKind {
 public:
  using Shape = LinearShape;
  using Forward = dnnl::inner_product_forward;
  using BackwardData = dnnl::inner_product_backward_data;
  using BackwardWeights = dnnl::inner_product_backward_weights;
  static constexpr const char* kName = "product";
  static constexpr auto kWeights = memory::format_tag::oi;

  explicit ProductKind(const LinearShape& shape) : shape_(shape) {}

  memory::dims weight_sizes() const { return {shape_.outputs, shape_.inputs}; }
  std::int64_t outputs() const { return shape_.outputs; }
  std::int64_t biases() const { return shape_.outputs; }
  memory::desc input(std::int64_t samples, memory::data_type type) const {
    return {{samples, shape_.inputs}, type, memory::format_tag::nc};
  }
  memory::desc output(std::int64_t samples, memory::data_type type) const {
    return {{samples, shape_.outputs}, type, memory::format_tag::nc};
  }

  static Forward::desc forward(const memory::desc& x, const memory::desc& weights,
                               const memory::desc& bias, const memory::desc& y) {
    return {dnnl::prop_kind::forward_training, x, weights, bias, y};
  }
  static BackwardData::desc backward_data(const memory::desc& dx, const memory::desc& weights,
                                          const memory::desc& dy) {
    return {dx, weights, dy};
  }
  static BackwardWeights::desc backward_weights(const memory::desc& x, const memory::desc& dw,
                                                const memory::desc& db, const memory::desc& dy) {
    return {x, dw, db, dy};
  }

 private:
  const LinearShape shape_;
};

// A primitive that reads the weights, with its copy of them in the layout that it prefers.
template <class Primitive>
struct WeightsReader {
  Primitive primitive;
  Block weights, scratch;
  std::int64_t version = 0;  // the set_weights call that the packed copy comes from
};

// The primitives for one number of samples.
template <class Kind>
struct Primitives {
  WeightsReader<typename Kind::Forward> forward;
  WeightsReader<typename Kind::BackwardData> backward_data;
  typename Kind::BackwardWeights backward_weights;
  memory x, y, dx, dy;  // each call puts in the caller's buffers
  Block weight_gradient, bias_gradient, weights_scratch;
};

std::string why_not(const char* kind, const dnnl::error& error) {
  return std::string("oneDNN cannot run this ") + kind + " (" + error.what() + ")";
}

// Ends the program if oneDNN throws, as a pass cannot report it (operations.h). The constructor has
// found an implementation, so the cause is a lack of memory or a bug of ours.
template <class Pass>
void run_pass(const char* kind, Pass pass) {
  std::string failure;
  try {
    pass();
  } catch (const dnnl::error& error) {
    failure = why_not(kind, error);
  }
  CHECK(failure.empty(), failure);
}

template <class Kind>
class OnednnOp : public WeightedOp {
 public:
  // Throws dnnl::error.
  OnednnOp(const typename Kind::Shape& shape, const PlanOptions& plan)
      : kind_(shape),
        has_bias_(shape.bias),
        relu_(shape.relu),
        type_(plan.type == DataType::kFloat32 ? memory::data_type::f32 : memory::data_type::bf16),
        weights_(device_, {kind_.weight_sizes(), type_, Kind::kWeights}),
        gradient_(device_, {kind_.weight_sizes(), memory::data_type::f32, Kind::kWeights}),
        bias_(device_, {{kind_.biases()}, memory::data_type::f32, memory::format_tag::x}) {
    primitives_for(plan.max_samples);
    // These only check that descriptions exist; each pass makes its primitives when it needs them.
    (void)describe_backward_weights(plan.max_samples);
    (void)describe_backward_data(plan.max_samples);
  }

  void set_weights(const LayerWeights& from) override {
    const auto* weights = static_cast<const std::byte*>(from.weights);
    std::copy_n(weights, weights_.bytes(), weights_.storage.data());
    if (has_bias_) {
      std::copy_n(from.bias, kind_.biases(), static_cast<float*>(bias_.handle.get_data_handle()));
    }
    ++version_;
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    run_pass(Kind::kName, [&] { run_forward(samples, x, y); });
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    run_pass(Kind::kName,
             [&] { run_backward(samples, x, y, dy, dx, weight_gradient, bias_gradient); });
  }

 private:
  using Set = Primitives<Kind>;

  // Numbers of samples whose primitives are kept: the full batch, the last batch of an epoch, and
  // the same two of the evaluation.
  static constexpr std::size_t kMaxPrimitives = 4;

  // Throws dnnl::error, as do all functions below.
  void run_forward(std::int64_t samples, ConstBuffer x, Buffer y) {
    Set& p = primitives_for(samples);
    p.x.set_data_handle(const_cast<void*>(x));
    p.y.set_data_handle(y);
    run(p.forward, {{DNNL_ARG_SRC, p.x}, {DNNL_ARG_BIAS, bias_.handle}, {DNNL_ARG_DST, p.y}});
  }

  void run_backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                    float* weight_gradient, float* bias_gradient) {
    Set& p = primitives_for(samples);
    if (relu_) fast_relu_backward(data_type(), samples * kind_.outputs(), y, dy, dy);
    p.x.set_data_handle(const_cast<void*>(x));
    p.dy.set_data_handle(dy);
    if (weight_gradient != nullptr) add_gradients(p, samples, weight_gradient, bias_gradient);
    if (dx == nullptr) return;
    if (!p.backward_data.primitive) {
      p.backward_data = reader_of<typename Kind::BackwardData>(describe_backward_data(samples));
    }
    p.dx.set_data_handle(dx);
    run(p.backward_data, {{DNNL_ARG_DIFF_DST, p.dy}, {DNNL_ARG_DIFF_SRC, p.dx}});
  }

  void add_gradients(Set& p, std::int64_t samples, float* weight_gradient, float* bias_gradient) {
    if (!p.backward_weights) make_backward_weights(p, samples);
    p.backward_weights.execute(device_.stream, {{DNNL_ARG_SRC, p.x},
                                                {DNNL_ARG_DIFF_DST, p.dy},
                                                {DNNL_ARG_DIFF_WEIGHTS, p.weight_gradient.handle},
                                                {DNNL_ARG_DIFF_BIAS, p.bias_gradient.handle},
                                                {DNNL_ARG_SCRATCHPAD, p.weights_scratch.handle}});
    reorder(p.weight_gradient.handle, gradient_.handle);
    add(gradient_, weight_gradient);
    if (has_bias_) add(p.bias_gradient, bias_gradient);  // computed in any case (bias_layout)
  }

  // Packs the weights if they were set after this number of samples last ran.
  template <class Primitive>
  void run(WeightsReader<Primitive>& reader, std::unordered_map<int, memory> arguments) {
    if (std::exchange(reader.version, version_) != version_) {
      reorder(weights_.handle, reader.weights.handle);
    }
    arguments.insert(
        {{DNNL_ARG_WEIGHTS, reader.weights.handle}, {DNNL_ARG_SCRATCHPAD, reader.scratch.handle}});
    reader.primitive.execute(device_.stream, arguments);
  }

  DataType data_type() const {
    return type_ == memory::data_type::f32 ? DataType::kFloat32 : DataType::kBFloat16;
  }
  memory::desc input(std::int64_t samples) const { return kind_.input(samples, type_); }
  memory::desc output(std::int64_t samples) const { return kind_.output(samples, type_); }
  // In the layout that the primitive chooses.
  memory::desc packed_weights(memory::data_type type) const {
    return {kind_.weight_sizes(), type, memory::format_tag::any};
  }
  // Every primitive has a bias: without one in the shape it is zero, and its gradient is not used.
  memory::desc bias_layout() const { return bias_.handle.get_desc(); }

  Set& primitives_for(std::int64_t samples) {
    const auto found = primitives_.find(samples);
    if (found != primitives_.end()) return found->second;
    if (primitives_.size() == kMaxPrimitives) primitives_.clear();  // made again when next used
    return primitives_.emplace(samples, make_forward(samples)).first->second;
  }

  static dnnl::primitive_attr attributes() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  typename Kind::Forward::primitive_desc describe_forward(std::int64_t samples) const {
    dnnl::primitive_attr with_relu = attributes();
    if (relu_) {
      dnnl::post_ops operations;
      operations.append_eltwise(/*scale=*/1, dnnl::algorithm::eltwise_relu, /*alpha=*/0,
                                /*beta=*/0);
      with_relu.set_post_ops(operations);
    }
    return {kind_.forward(input(samples), packed_weights(type_), bias_layout(), output(samples)),
            with_relu, device_.engine};
  }

  Set make_forward(std::int64_t samples) const {
    Set p;
    p.forward = reader_of<typename Kind::Forward>(describe_forward(samples));
    // nullptr: forward() and backward() put the caller's buffers in.
    p.x = memory(input(samples), device_.engine, nullptr);
    p.dx = memory(input(samples), device_.engine, nullptr);
    p.y = memory(output(samples), device_.engine, nullptr);
    p.dy = memory(output(samples), device_.engine, nullptr);
    return p;
  }

  template <class Primitive>
  WeightsReader<Primitive> reader_of(const typename Primitive::primitive_desc& description) const {
    return {Primitive(description), Block(device_, description.weights_desc()),
            Block(device_, description.scratchpad_desc())};
  }

  // oneDNN also takes the forward pass's description, as a hint at its choice there.
  typename Kind::BackwardWeights::primitive_desc describe_backward_weights(
      std::int64_t samples) const {
    return {kind_.backward_weights(input(samples), packed_weights(memory::data_type::f32),
                                   bias_layout(), output(samples)),
            attributes(), device_.engine, describe_forward(samples)};
  }

  void make_backward_weights(Set& p, std::int64_t samples) const {
    const auto description = describe_backward_weights(samples);
    p.backward_weights = typename Kind::BackwardWeights(description);
    p.weight_gradient = Block(device_, description.diff_weights_desc());
    p.bias_gradient = Block(device_, description.diff_bias_desc());  // in any case (bias_layout)
    p.weights_scratch = Block(device_, description.scratchpad_desc());
  }

  typename Kind::BackwardData::primitive_desc describe_backward_data(std::int64_t samples) const {
    return {kind_.backward_data(input(samples), packed_weights(type_), output(samples)),
            attributes(), device_.engine, describe_forward(samples)};
  }

  void reorder(memory& from, memory& to) {
    dnnl::reorder(from, to).execute(device_.stream, from, to);
  }

  static void add(const Block& from, float* to) {
    const auto* values = static_cast<const float*>(from.handle.get_data_handle());
    const std::int64_t count = from.bytes() / std::int64_t{sizeof(float)};
    for (std::int64_t i = 0; i < count; ++i) to[i] += values[i];
  }

  const Kind kind_;
  const bool has_bias_, relu_;
  const memory::data_type type_;
  Device device_;
  Block weights_;   // as set, unpacked
  Block gradient_;  // unpacked
  Block bias_;      // zeros without a bias
  std::int64_t version_ = 0;
  std::unordered_map<std::int64_t, Set> primitives_;
};

template <class Kind>
Result<std::unique_ptr<WeightedOp>> make(const typename Kind::Shape& shape,
                                         const PlanOptions& plan) {
  try {
    return std::unique_ptr<WeightedOp>(std::make_unique<OnednnOp<Kind>>(shape, plan));
  } catch (const dnnl::error& error) {
    return invalid(why_not(Kind::kName, error) + ": choose another shape or the backend reference");
  }
}

}  // namespace

Result<std::unique_ptr<WeightedOp>> onednn_conv(const ConvShape& shape, const PlanOptions& plan) {
  return make<ConvKind>(shape, plan);
}

Result<std::unique_ptr<WeightedOp>> onednn_linear(const LinearShape& shape,
                                                  const PlanOptions& plan) {
  return make<ProductKind>(shape, plan);
}

// Heeds DNNL_MAX_CPU_ISA, which makes a processor look like a lesser one.
CpuKind onednn_cpu() {
  using dnnl::cpu_isa;
  const cpu_isa isa = dnnl::get_effective_cpu_isa();
  // Each value is a set of bits that includes the bits of lesser instruction sets.
  const auto has = [isa](cpu_isa one) {
    return (static_cast<unsigned>(isa) & static_cast<unsigned>(one)) == static_cast<unsigned>(one);
  };
  if (has(cpu_isa::avx512_core_amx)) return CpuKind::kAmx;
  if (has(cpu_isa::avx512_core_bf16)) return CpuKind::kAvx512BFloat16;
  return has(cpu_isa::avx512_core) ? CpuKind::kAvx512 : CpuKind::kOther;
}

}  // namespace fettle::kernels
