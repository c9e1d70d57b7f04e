#include "kernels/onednn/convolution.h"

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

constexpr auto kAuto = memory::format_tag::any;

// One engine and stream an operation: both are cheap handles, and nothing is shared between
// threads.
struct Device {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

std::int64_t bytes_of(const memory::desc& layout) {
  return static_cast<std::int64_t>(layout.get_size());
}

// A memory object of its own storage.
struct Block {
  Block() = default;
  Block(const Device& device, const memory::desc& layout)
      : storage(bytes_of(layout)), handle(layout, device.engine, storage.data()) {}
  Bytes storage;
  memory handle;
};

// The primitives for one number of samples, with the weights in the layout they like.
struct Primitives {
  dnnl::convolution_forward forward;
  dnnl::convolution_backward_data backward_data;
  dnnl::convolution_backward_weights backward_weights;
  memory x, y, dx, dy;  // NHWC; the caller's buffers are put in for each call
  Block forward_weights, data_weights, weight_gradient, bias_gradient;
  Block forward_scratch, data_scratch, weights_scratch;
  // Which set_weights the packed copies come from.
  std::int64_t forward_version = 0, data_version = 0;
};

std::string why_not(const dnnl::error& error) {
  return std::string("oneDNN cannot run this convolution (") + error.what() + ")";
}

// A pass has no way to report what oneDNN throws (operations.h). The constructor has found that
// there is an implementation, so it is a lack of memory, or a fault of ours.
template <class Pass>
void run_pass(Pass pass) {
  std::string failure;
  try {
    pass();
  } catch (const dnnl::error& error) {
    failure = why_not(error);
  }
  CHECK(failure.empty(), failure);
}

class OnednnConv : public WeightedOp {
 public:
  // Throws dnnl::error.
  OnednnConv(const ConvShape& shape, const PlanOptions& plan)
      : shape_(shape),
        type_(plan.type == DataType::kFloat32 ? memory::data_type::f32 : memory::data_type::bf16),
        weights_(device_, {weight_sizes(), type_, memory::format_tag::ohwi}),
        gradient_(device_, {weight_sizes(), memory::data_type::f32, memory::format_tag::ohwi}),
        bias_(device_, {{shape.channels}, memory::data_type::f32, memory::format_tag::x}) {
    primitives_for(plan.max_samples);
    // These only describe: what is asked for later is made by the pass that needs it.
    (void)describe_backward_weights(plan.max_samples);
    (void)describe_backward_data(plan.max_samples);
  }

  void set_weights(const LayerWeights& from) override {
    const auto* weights = static_cast<const std::byte*>(from.weights);
    std::copy_n(weights, weights_.storage.size(), weights_.storage.data());
    if (shape_.bias) {
      std::copy_n(from.bias, shape_.channels, static_cast<float*>(bias_.handle.get_data_handle()));
    }
    ++version_;
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    run_pass([&] { run_forward(samples, x, y); });
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    run_pass([&] { run_backward(samples, x, y, dy, dx, weight_gradient, bias_gradient); });
  }

 private:
  // Numbers of samples whose primitives are kept: the full batch, the last batch of an epoch, and
  // the same two of the evaluation.
  static constexpr std::size_t kMaxPrimitives = 4;

  // Throws dnnl::error, as all below.
  void run_forward(std::int64_t samples, ConstBuffer x, Buffer y) {
    Primitives& p = primitives_for(samples);
    // Packs the weights if they were set after this number of samples was last run.
    if (std::exchange(p.forward_version, version_) != version_) {
      reorder(weights_.handle, p.forward_weights.handle);
    }
    p.x.set_data_handle(const_cast<void*>(x));
    p.y.set_data_handle(y);
    p.forward.execute(device_.stream, {{DNNL_ARG_SRC, p.x},
                                       {DNNL_ARG_WEIGHTS, p.forward_weights.handle},
                                       {DNNL_ARG_BIAS, bias_.handle},
                                       {DNNL_ARG_DST, p.y},
                                       {DNNL_ARG_SCRATCHPAD, p.forward_scratch.handle}});
  }

  void run_backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                    float* weight_gradient, float* bias_gradient) {
    Primitives& p = primitives_for(samples);
    const std::int64_t outputs = samples * shape_.output().size();
    if (shape_.relu) fast_relu_backward(data_type(), outputs, y, dy, dy);
    p.x.set_data_handle(const_cast<void*>(x));
    p.dy.set_data_handle(dy);
    if (!p.backward_weights) make_backward_weights(p, samples);
    p.backward_weights.execute(device_.stream, {{DNNL_ARG_SRC, p.x},
                                                {DNNL_ARG_DIFF_DST, p.dy},
                                                {DNNL_ARG_DIFF_WEIGHTS, p.weight_gradient.handle},
                                                {DNNL_ARG_DIFF_BIAS, p.bias_gradient.handle},
                                                {DNNL_ARG_SCRATCHPAD, p.weights_scratch.handle}});
    reorder(p.weight_gradient.handle, gradient_.handle);
    add(gradient_, weight_gradient);
    if (shape_.bias) add(p.bias_gradient, bias_gradient);  // computed in any case (bias_layout)
    if (dx != nullptr) backward_data(p, samples, dx);
  }

  // oneDNN names sizes O, I, H, W (images N, C, H, W); the format tag says how they lie in memory.
  memory::dims weight_sizes() const {
    return {shape_.channels, shape_.input.channels, shape_.kernel, shape_.kernel};
  }
  DataType data_type() const {
    return type_ == memory::data_type::f32 ? DataType::kFloat32 : DataType::kBFloat16;
  }
  memory::desc images(std::int64_t samples, const ImageShape& image) const {
    return {{samples, image.channels, image.height, image.width}, type_, memory::format_tag::nhwc};
  }
  // In the layout that the primitive chooses.
  memory::desc packed_weights(memory::data_type type) const {
    return {weight_sizes(), type, kAuto};
  }
  // Every primitive has a bias: without one in the shape it is zero, and its gradient is not used.
  memory::desc bias_layout() const { return bias_.handle.get_desc(); }
  memory::dims strides() const { return {shape_.stride, shape_.stride}; }
  memory::dims padding() const { return {shape_.padding, shape_.padding}; }

  Primitives& primitives_for(std::int64_t samples) {
    const auto found = primitives_.find(samples);
    if (found != primitives_.end()) return found->second;
    if (primitives_.size() == kMaxPrimitives) primitives_.clear();
    return primitives_.emplace(samples, make_forward(samples)).first->second;
  }

  dnnl::convolution_forward::primitive_desc describe_forward(std::int64_t samples) const {
    const dnnl::convolution_forward::desc operation(
        dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
        images(samples, shape_.input), packed_weights(type_), bias_layout(),
        images(samples, shape_.output()), strides(), padding(), padding());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape_.relu) {
      dnnl::post_ops operations;
      operations.append_eltwise(/*scale=*/1, dnnl::algorithm::eltwise_relu, /*alpha=*/0,
                                /*beta=*/0);
      attributes.set_post_ops(operations);
    }
    return {operation, attributes, device_.engine};
  }

  Primitives make_forward(std::int64_t samples) const {
    const auto description = describe_forward(samples);
    Primitives p;
    p.forward = dnnl::convolution_forward(description);
    // nullptr: forward() and backward() put the caller's buffers in.
    p.x = memory(images(samples, shape_.input), device_.engine, nullptr);
    p.dx = memory(images(samples, shape_.input), device_.engine, nullptr);
    p.y = memory(images(samples, shape_.output()), device_.engine, nullptr);
    p.dy = memory(images(samples, shape_.output()), device_.engine, nullptr);
    p.forward_weights = Block(device_, description.weights_desc());
    p.forward_scratch = Block(device_, description.scratchpad_desc());
    return p;
  }

  dnnl::convolution_backward_weights::primitive_desc describe_backward_weights(
      std::int64_t samples) const {
    const dnnl::convolution_backward_weights::desc operation(
        dnnl::algorithm::convolution_direct, images(samples, shape_.input),
        packed_weights(memory::data_type::f32), bias_layout(), images(samples, shape_.output()),
        strides(), padding(), padding());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return {operation, attributes, device_.engine, describe_forward(samples)};
  }

  void make_backward_weights(Primitives& p, std::int64_t samples) const {
    const auto description = describe_backward_weights(samples);
    p.backward_weights = dnnl::convolution_backward_weights(description);
    p.weight_gradient = Block(device_, description.diff_weights_desc());
    p.bias_gradient = Block(device_, description.diff_bias_desc());  // in any case (bias_layout)
    p.weights_scratch = Block(device_, description.scratchpad_desc());
  }

  // oneDNN asks for the forward pass's description, too: a hint at what it chose there.
  dnnl::convolution_backward_data::primitive_desc describe_backward_data(
      std::int64_t samples) const {
    const dnnl::convolution_backward_data::desc operation(
        dnnl::algorithm::convolution_direct, images(samples, shape_.input), packed_weights(type_),
        images(samples, shape_.output()), strides(), padding(), padding());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return {operation, attributes, device_.engine, describe_forward(samples)};
  }

  void make_backward_data(Primitives& p, std::int64_t samples) const {
    const auto description = describe_backward_data(samples);
    p.backward_data = dnnl::convolution_backward_data(description);
    p.data_weights = Block(device_, description.weights_desc());
    p.data_scratch = Block(device_, description.scratchpad_desc());
  }

  void backward_data(Primitives& p, std::int64_t samples, Buffer dx) {
    if (!p.backward_data) make_backward_data(p, samples);
    if (std::exchange(p.data_version, version_) != version_) {
      reorder(weights_.handle, p.data_weights.handle);
    }
    p.dx.set_data_handle(dx);
    p.backward_data.execute(device_.stream, {{DNNL_ARG_DIFF_DST, p.dy},
                                             {DNNL_ARG_WEIGHTS, p.data_weights.handle},
                                             {DNNL_ARG_DIFF_SRC, p.dx},
                                             {DNNL_ARG_SCRATCHPAD, p.data_scratch.handle}});
  }

  void reorder(memory& from, memory& to) {
    dnnl::reorder(from, to).execute(device_.stream, from, to);
  }

  static void add(const Block& from, float* to) {
    const auto* values = static_cast<const float*>(from.handle.get_data_handle());
    const std::int64_t count = from.storage.size() / std::int64_t{sizeof(float)};
    for (std::int64_t i = 0; i < count; ++i) to[i] += values[i];
  }

  const ConvShape shape_;
  const memory::data_type type_;
  Device device_;
  Block weights_;   // as set, unpacked
  Block gradient_;  // unpacked
  Block bias_;      // zeros where there is none
  std::int64_t version_ = 0;
  std::unordered_map<std::int64_t, Primitives> primitives_;
};

}  // namespace

Result<std::unique_ptr<WeightedOp>> onednn_conv(const ConvShape& shape, const PlanOptions& plan) {
  try {
    return std::unique_ptr<WeightedOp>(std::make_unique<OnednnConv>(shape, plan));
  } catch (const dnnl::error& error) {
    return invalid(why_not(error) + ": choose another shape or the backend reference");
  }
}

bool onednn_has_bfloat16() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16;
}

}  // namespace fettle::kernels
