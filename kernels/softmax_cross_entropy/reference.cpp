// Softmax and cross entropy in one, with label smoothing (Szegedy et al., 2016), CPU reference.
//
//   p = softmax(z),  t = (1 - a) onehot(label) + a / classes       a = label_smoothing
//   loss = -sum_c t[c] log p[c]                                     dz = p - t
//
// As torch.nn.functional.cross_entropy with reduction="sum". One row is cheap compared with the
// layers before it, so every CPU backend uses this implementation.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/optimizer/step.h"
#include "kernels/reference/floats.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

class ReferenceSoftmaxCrossEntropy : public SoftmaxCrossEntropyOp {
 public:
  ReferenceSoftmaxCrossEntropy(std::int64_t classes, DataType type)
      : classes_(classes),
        bytes_per_row_(classes * size_of(type)),
        logits_(type, classes),
        gradient_(type, classes),
        exponentials_(classes) {
    CHECK(classes > 0, "a loss needs at least one class");
  }

  void run(std::int64_t samples, ConstBuffer logits, const std::int32_t* labels,
           const LossOptions& options, LossSums* sums, Buffer dlogits) override {
    const float gradient_scale = options.gradient_scale == nullptr ? 1 : *options.gradient_scale;
    const auto* row = static_cast<const std::byte*>(logits);
    auto* gradient_row = static_cast<std::byte*>(dlogits);
    for (std::int64_t s = 0; s < samples; ++s, row += bytes_per_row_) {
      CHECK(labels[s] >= 0 && labels[s] < classes_, "a label is a class");
      run_row(logits_.read(row, classes_), labels[s], options.label_smoothing, *sums);
      if (gradient_row == nullptr) continue;
      write_gradient(labels[s], options.label_smoothing, gradient_scale, gradient_row);
      gradient_row += bytes_per_row_;
    }
    sums->samples += samples;
    if (options.step_sums != nullptr) {  // a step's last loss: adds to the step's sums
      add_and_clear(*sums, *options.step_input, *options.step_sums);
    }
  }

 private:
  // Leaves the exponentials of the row and their sum for write_gradient.
  void run_row(const float* z, std::int64_t label, float label_smoothing, LossSums& sums) {
    const float* largest = std::max_element(z, z + classes_);
    total_ = 0;
    double shifted_sum = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      const float shifted = z[c] - *largest;
      exponentials_[c] = std::exp(shifted);
      total_ += exponentials_[c];
      shifted_sum += shifted;
    }
    const double log_total = std::log(total_);
    const double label_loss = log_total - (static_cast<double>(z[label]) - *largest);
    const double mean_loss = log_total - shifted_sum / static_cast<double>(classes_);  // of classes
    sums.loss += (1 - label_smoothing) * label_loss + label_smoothing * mean_loss;
    sums.correct += largest - z == label ? 1 : 0;
  }

  void write_gradient(std::int64_t label, float label_smoothing, float gradient_scale,
                      Buffer gradient_row) {
    float* dz = gradient_.target(gradient_row);
    const float spread = label_smoothing / static_cast<float>(classes_);
    for (std::int64_t c = 0; c < classes_; ++c) {
      const float target = spread + (c == label ? 1 - label_smoothing : 0);
      dz[c] = gradient_scale * (static_cast<float>(exponentials_[c] / total_) - target);
    }
    gradient_.write(gradient_row, classes_);
  }

  const std::int64_t classes_;
  const std::int64_t bytes_per_row_;
  Floats logits_, gradient_;  // one row each
  AlignedArray<float> exponentials_;
  double total_ = 0;
};

}  // namespace

std::unique_ptr<SoftmaxCrossEntropyOp> reference_softmax_cross_entropy(std::int64_t classes,
                                                                       DataType type) {
  return std::make_unique<ReferenceSoftmaxCrossEntropy>(classes, type);
}

}  // namespace fettle::kernels
