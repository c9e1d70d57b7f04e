// Convolution as an implicit matrix product: the tiles of linear/matrix_product.cuh, with operands
// that read patches of the image directly. An unfolded copy would be kernel x kernel times as
// large.
//
//   forward   Y[(s, p, q), o]    = sum over (u, v, c) of X[s, p S + u - P, q S + v - P, c] W
//   data      dX[(s, h, w), c]   = sum over (u, v, o) of dY[s, (h + P - u) / S, ...] W,
//                                  where S divides
//   weights   dW[o, (u, v, c)]  += sum over (s, p, q) of dY X
//
// S is the stride, P the padding.
//
// Bound as the product is, plus the divisions that find a patch, once for each staged element.
#include "kernels/cuda/operations.h"
#include "kernels/linear/bias_gradient.h"
#include "kernels/linear/matrix_product.cuh"

namespace fettle::kernels {
namespace {

using cuda::from_float;

// The shape in the integer width that index arithmetic needs; offsets of elements are 64-bit.
struct Geometry {
  explicit Geometry(const ConvShape& shape)
      : height(static_cast<int>(shape.input.height)),
        width(static_cast<int>(shape.input.width)),
        channels(static_cast<int>(shape.input.channels)),
        out_height(static_cast<int>(shape.output().height)),
        out_width(static_cast<int>(shape.output().width)),
        out_channels(static_cast<int>(shape.channels)),
        kernel(static_cast<int>(shape.kernel)),
        stride(static_cast<int>(shape.stride)),
        padding(static_cast<int>(shape.padding)) {}

  int height, width, channels;
  int out_height, out_width, out_channels;
  int kernel, stride, padding;
};

// Returns element (u, v, c) of the patch under the kernel at output pixel (s, p, q); zero in the
// padding.
template <class T>
__device__ T patch_element(const Geometry& g, const T* x, int pixel, int element) {
  const int c = element % g.channels;
  const int v = element / g.channels % g.kernel;
  const int u = element / g.channels / g.kernel;
  const int q = pixel % g.out_width;
  const int p = pixel / g.out_width % g.out_height;
  const int s = pixel / g.out_width / g.out_height;
  const int row = p * g.stride + u - g.padding;
  const int column = q * g.stride + v - g.padding;
  const bool padding = row < 0 || row >= g.height || column < 0 || column >= g.width;
  if (padding) return from_float<T>(0.0F);
  return x[((std::int64_t{s} * g.height + row) * g.width + column) * g.channels + c];
}

// kAlong: a row of the matrix is a pixel, as in forward. Otherwise the sum is over pixels, as in
// the weight gradient.
template <class T, bool kAlong>
struct Patches {
  using Value = T;
  static constexpr bool kAlongDepth = kAlong;
  Geometry geometry;
  const T* x;
  __device__ T operator()(int index, int depth) const {
    return kAlong ? patch_element(geometry, x, index, depth)
                  : patch_element(geometry, x, depth, index);
  }
};

// Operand of the input gradient: the gradients that output pixels under (u, v) send to an input
// pixel.
template <class T>
struct OutputGradients {
  using Value = T;
  static constexpr bool kAlongDepth = true;
  Geometry geometry;
  const T* dy;
  __device__ T operator()(int index, int depth) const {
    const Geometry& g = geometry;
    const int o = depth % g.out_channels;
    const int v = depth / g.out_channels % g.kernel;
    const int u = depth / g.out_channels / g.kernel;
    // h + P - u and w + P - v, which give p and q if the stride divides them.
    const int row = index / g.width % g.height + g.padding - u;
    const int column = index % g.width + g.padding - v;
    // No output pixel has this input pixel under (u, v).
    if (row < 0 || column < 0 || row % g.stride != 0 || column % g.stride != 0)
      return from_float<T>(0.0F);
    const int p = row / g.stride;
    const int q = column / g.stride;
    if (p >= g.out_height || q >= g.out_width) return from_float<T>(0.0F);
    const std::int64_t s = index / g.width / g.height;
    return dy[((s * g.out_height + p) * g.out_width + q) * g.out_channels + o];
  }
};

// Reads W[o, u, v, c] as a matrix by (c, (u, v, o)).
template <class T>
struct WeightsByInput {
  using Value = T;
  static constexpr bool kAlongDepth = false;
  Geometry geometry;
  const T* weights;
  __device__ T operator()(int index, int depth) const {
    const std::int64_t o = depth % geometry.out_channels;
    const int place = depth / geometry.out_channels;
    const std::int64_t places = geometry.kernel * geometry.kernel;
    return weights[(o * places + place) * geometry.channels + index];
  }
};

class OwnConv : public WeightedOp {
 public:
  OwnConv(cuda::Device& device, const ConvShape& shape, DataType type)
      : device_(device),
        shape_(shape),
        type_(type),
        geometry_(shape),
        pixels_(static_cast<int>(shape.output().height * shape.output().width)),
        patch_(static_cast<int>(shape.kernel * shape.kernel * shape.input.channels)),
        bias_gradient_(device, type, shape.channels, shape.bias, shape.relu) {}

  // Reserves the workspace for calls of up to `max_samples`.
  Status reserve(std::int64_t max_samples) {
    FETTLE_TRY(bias_gradient_.reserve(max_samples * pixels_));
    const std::int64_t bytes =
        cuda::sum_bytes(device_, shape_.channels, patch_, max_samples * pixels_);
    FETTLE_TRY(device_.reserve_branch_scratch(bytes));
    return device_.reserve_scratch(bytes);
  }

  void set_weights(const LayerWeights& from) override {
    weights_ = from.weights;
    bias_ = shape_.bias ? from.bias : nullptr;
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    cuda::with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      cuda::multiply(device_, {pixels_of(samples), geometry_.out_channels, patch_},
                     Patches<T, true>{geometry_, static_cast<const T*>(x)},
                     cuda::AlongDepth<T>{static_cast<const T*>(weights_), patch_},
                     cuda::WriteResult<T>{static_cast<T*>(y), bias_, shape_.relu, shape_.channels});
    });
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    // First, because both products read the masked dy.
    bias_gradient_.mask_and_sum(pixels_of(samples), y, dy, bias_gradient);
    if (dx == nullptr) return add_weight_gradient(samples, x, dy, weight_gradient);
    device_.run_beside([&] { add_weight_gradient(samples, x, dy, weight_gradient); },
                       [&] { find_input_gradient(samples, dy, dx); });
  }

 private:
  void add_weight_gradient(std::int64_t samples, ConstBuffer x, ConstBuffer dy,
                           float* weight_gradient) {
    cuda::with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      cuda::add_product(device_, {geometry_.out_channels, patch_, pixels_of(samples)},
                        cuda::AcrossDepth<T>{static_cast<const T*>(dy), shape_.channels},
                        Patches<T, false>{geometry_, static_cast<const T*>(x)}, weight_gradient);
    });
  }

  // Sizes of products fit 32 bits: own_conv() has checked them for the maximum number of samples.
  void find_input_gradient(std::int64_t samples, ConstBuffer dy, Buffer dx) {
    cuda::with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      const int input_pixels = static_cast<int>(samples) * geometry_.height * geometry_.width;
      const int depth = geometry_.kernel * geometry_.kernel * geometry_.out_channels;
      cuda::multiply(device_, {input_pixels, geometry_.channels, depth},
                     OutputGradients<T>{geometry_, static_cast<const T*>(dy)},
                     WeightsByInput<T>{geometry_, static_cast<const T*>(weights_)},
                     cuda::WriteResult<T>{static_cast<T*>(dx), /*bias=*/nullptr, /*relu=*/false,
                                          geometry_.channels});
    });
  }

  int pixels_of(std::int64_t samples) const { return static_cast<int>(samples) * pixels_; }

  cuda::Device& device_;
  const ConvShape shape_;
  const DataType type_;
  const Geometry geometry_;
  const int pixels_;  // of one output image
  const int patch_;   // inputs under the kernel at one place
  cuda::BiasGradient bias_gradient_;
  ConstBuffer weights_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<WeightedOp>> own_conv(cuda::Device& device, const ConvShape& shape,
                                             const PlanOptions& plan) {
  const ImageShape output = shape.output();
  const std::int64_t places = shape.kernel * shape.kernel;
  // Checks forward and the weight gradient, which has the same three sizes in other roles
  // (check_product allows for that); then the input gradient.
  FETTLE_TRY(cuda::check_product(plan.max_samples * output.height * output.width, shape.channels,
                                 places * shape.input.channels));
  FETTLE_TRY(cuda::check_product(plan.max_samples * shape.input.height * shape.input.width,
                                 shape.input.channels, places * shape.channels));
  auto op = std::make_unique<OwnConv>(device, shape, plan.type);
  FETTLE_TRY(op->reserve(plan.max_samples));
  return std::unique_ptr<WeightedOp>(std::move(op));
}

}  // namespace fettle::kernels
