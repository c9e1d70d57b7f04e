// Convolution (cross-correlation, as in every deep-learning library), CPU reference.
//
//   y[s, p, q, o] = b[o] + sum_{u, v, c} x[s, p S + u - P, q S + v - P, c] W[o, u, v, c]
//                   then max(0, y) where ReLU is fused; S: stride, P: padding
//
// with x zero outside the image. By "image to columns": each sample is unfolded into a matrix with
// a row for each output pixel and a column for each (u, v, c), and the layer becomes a linear one.
// Samples are processed one by one, so the order of summation is fixed and memory is for one
// sample.
#include <algorithm>

#include "kernels/reference/floats.h"
#include "kernels/reference/fused.h"
#include "kernels/reference/product.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

class ReferenceConv : public WeightedOp {
 public:
  ReferenceConv(const ConvShape& shape, const PlanOptions& plan)
      : shape_(shape),
        pixels_(shape.output().height * shape.output().width),
        patch_(shape.kernel * shape.kernel * shape.input.channels),
        x_(plan.type, plan.max_samples * shape.input.size()),
        y_(plan.type, plan.max_samples * shape.output().size()),
        dy_(plan.type, plan.max_samples * shape.output().size()),
        dx_(plan.type, plan.max_samples * shape.input.size()),
        given_(plan.type, shape.channels * patch_),
        weights_(shape.channels * patch_),
        transposed_(shape.channels * patch_),
        bias_(shape.channels),
        columns_(pixels_ * patch_) {}

  void set_weights(const LayerWeights& from) override {
    const float* weights = given_.read(from.weights, weights_.size());
    std::copy_n(weights, weights_.size(), weights_.data());
    for (std::int64_t o = 0; o < shape_.channels; ++o) {
      for (std::int64_t i = 0; i < patch_; ++i) {
        transposed_[i * shape_.channels + o] = weights_[o * patch_ + i];
      }
    }
    if (shape_.bias) std::copy_n(from.bias, shape_.channels, bias_.data());
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    const float* input = x_.read(x, samples * shape_.input.size());
    const std::int64_t output_size = shape_.output().size();
    float* output = y_.target(y);
    fill_rows(samples * pixels_, shape_.channels, shape_.bias ? bias_.data() : nullptr, output);
    for (std::int64_t s = 0; s < samples; ++s) {
      unfold(input + s * shape_.input.size());
      add_product(pixels_, shape_.channels, patch_, {columns_.data(), patch_, 1},
                  transposed_.data(), output + s * output_size);
    }
    if (shape_.relu) relu_all(samples * output_size, output, output);
    y_.write(y, samples * output_size);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    const float* gradient =
        masked_gradient(shape_.relu, samples * shape_.output().size(), y_, y, dy_, dy);
    const float* input = x_.read(x, samples * shape_.input.size());
    float* input_gradient = dx_.target(dx);
    for (std::int64_t s = 0; s < samples; ++s) {
      const float* sample_gradient = gradient + s * shape_.output().size();
      unfold(input + s * shape_.input.size());
      // dW += G' columns, with the gradient G [pixels, out channels], whose transpose has the row
      // stride 1.
      add_product(shape_.channels, patch_, pixels_, {sample_gradient, 1, shape_.channels},
                  columns_.data(), weight_gradient);
      if (input_gradient == nullptr) continue;  // dx was nullptr
      // From here on columns_ is the gradient of the unfolded sample.
      std::fill_n(columns_.data(), columns_.size(), 0.0F);
      add_product(pixels_, patch_, shape_.channels, {sample_gradient, shape_.channels, 1},
                  weights_.data(), columns_.data());
      fold(input_gradient + s * shape_.input.size());
    }
    if (shape_.bias) add_rows(samples * pixels_, shape_.channels, gradient, bias_gradient);
    dx_.write(dx, samples * shape_.input.size());
  }

 private:
  // Calls visit(offset in columns_, offset in the sample) for every run of `channels` elements of
  // the unfolded matrix; the second is -1 for a run in the padding.
  template <class Visit>
  void for_each_run(Visit visit) const {
    const ImageShape& in = shape_.input;
    const ImageShape out = shape_.output();
    std::int64_t offset = 0;
    for (std::int64_t p = 0; p < out.height; ++p) {
      for (std::int64_t q = 0; q < out.width; ++q) {
        for (std::int64_t u = 0; u < shape_.kernel; ++u) {
          const std::int64_t row = p * shape_.stride + u - shape_.padding;
          for (std::int64_t v = 0; v < shape_.kernel; ++v, offset += in.channels) {
            const std::int64_t column = q * shape_.stride + v - shape_.padding;
            const bool inside = row >= 0 && row < in.height && column >= 0 && column < in.width;
            visit(offset, inside ? (row * in.width + column) * in.channels : -1);
          }
        }
      }
    }
  }

  void unfold(const float* image) {
    for_each_run([&](std::int64_t offset, std::int64_t pixel) {
      float* run = columns_.data() + offset;
      if (pixel < 0) {
        std::fill_n(run, shape_.input.channels, 0.0F);
      } else {
        std::copy_n(image + pixel, shape_.input.channels, run);
      }
    });
  }

  // The transpose of unfold: adds every element to its original pixel.
  void fold(float* image) const {
    std::fill_n(image, shape_.input.size(), 0.0F);
    for_each_run([&](std::int64_t offset, std::int64_t pixel) {
      if (pixel < 0) return;
      const float* run = columns_.data() + offset;
      for (std::int64_t c = 0; c < shape_.input.channels; ++c) image[pixel + c] += run[c];
    });
  }

  const ConvShape shape_;
  const std::int64_t pixels_;  // of one output image
  const std::int64_t patch_;   // inputs under the kernel at one place
  Floats x_, y_, dy_, dx_, given_;
  AlignedArray<float> weights_;     // [out channels, patch]
  AlignedArray<float> transposed_;  // [patch, out channels]
  AlignedArray<float> bias_;
  AlignedArray<float> columns_;  // [pixels, patch]: one sample, unfolded
};

}  // namespace

std::unique_ptr<WeightedOp> reference_conv(const ConvShape& shape, const PlanOptions& plan) {
  return std::make_unique<ReferenceConv>(shape, plan);
}

}  // namespace fettle::kernels
