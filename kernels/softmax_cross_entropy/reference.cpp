// Softmax and cross entropy in one, with label smoothing (Szegedy et al., 2016), CPU reference.
//
//   p = softmax(z),  t = (1 - a) onehot(label) + a / classes       a = label_smoothing
//   loss = -sum_c t[c] log p[c]                                     dz = p - t
//
// As torch.nn.functional.cross_entropy with reduction="sum". With a teacher's logits y, their
// weight w and the temperature T (Hinton et al., 2015):
//
//   q = softmax(z / T),  r = softmax(y / T),  KL = sum_c r[c] (log r[c] - log q[c])
//   loss' = (1 - w) loss + w T^2 KL                                 dz' = (1 - w) dz + w T (q - r)
//
// KL is torch.nn.functional.kl_div with reduction="batchmean", times the samples. One row is cheap
// compared with the layers before it, so every CPU backend uses this implementation.
#include <algorithm>
#include <cmath>
#include <optional>

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
        exponentials_(classes),
        type_(type) {
    CHECK(classes > 0, "a loss needs at least one class");
  }

  void run(std::int64_t samples, ConstBuffer logits, const std::int32_t* labels,
           const LossOptions& options, LossSums* sums, Buffer dlogits) override {
    const float gradient_scale = options.gradient_scale == nullptr ? 1 : *options.gradient_scale;
    const auto* row = static_cast<const std::byte*>(logits);
    auto* gradient_row = static_cast<std::byte*>(dlogits);
    const LossTeacher& teacher = options.teacher;
    const auto* teachers_row = static_cast<const std::byte*>(teacher.logits);
    if (teachers_row != nullptr && !soft_) soft_.emplace(type_, classes_);
    for (std::int64_t s = 0; s < samples; ++s, row += bytes_per_row_) {
      CHECK(labels[s] >= 0 && labels[s] < classes_, "a label is a class");
      const float* const z = logits_.read(row, classes_);
      const double hard = run_row(z, labels[s], options.label_smoothing, *sums);
      if (teachers_row == nullptr) {
        sums->loss += hard;
      } else {
        const double soft =
            divergence(z, soft_->logits.read(teachers_row, classes_), teacher.temperature);
        const double weight = teacher.weight;
        sums->loss += (1 - weight) * hard + weight * soft;
        teachers_row += bytes_per_row_;
      }
      if (gradient_row == nullptr) continue;
      write_gradient(labels[s], options, gradient_scale, gradient_row);
      gradient_row += bytes_per_row_;
    }
    sums->samples += samples;
    if (options.step_sums != nullptr) {  // a step's last loss: adds to the step's sums
      add_and_clear(*sums, *options.step_input, *options.step_sums);
    }
  }

 private:
  // Returns the loss of the row without a teacher. Leaves the exponentials of the row and their sum
  // for write_gradient.
  double run_row(const float* z, std::int64_t label, float label_smoothing, LossSums& sums) {
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
    sums.correct += largest - z == label ? 1 : 0;
    return (1 - label_smoothing) * label_loss + label_smoothing * mean_loss;
  }

  // log softmax(logits / temperature).
  void log_softmax(const float* logits, double temperature, AlignedArray<double>& to) const {
    const double largest = *std::max_element(logits, logits + classes_);
    double total = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      to[c] = (logits[c] - largest) / temperature;
      total += std::exp(to[c]);
    }
    const double log_total = std::log(total);
    for (std::int64_t c = 0; c < classes_; ++c) to[c] -= log_total;
  }

  // Returns T^2 KL. Leaves q and r for add_teacher.
  double divergence(const float* z, const float* teachers, double temperature) {
    AlignedArray<double>& q = soft_->student;
    AlignedArray<double>& r = soft_->teacher;
    log_softmax(z, temperature, q);
    log_softmax(teachers, temperature, r);
    double sum = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double probability = std::exp(r[c]);
      sum += probability * (r[c] - q[c]);
      r[c] = probability;
      q[c] = std::exp(q[c]);
    }
    return temperature * temperature * sum;
  }

  void write_gradient(std::int64_t label, const LossOptions& options, float gradient_scale,
                      Buffer gradient_row) {
    const float label_smoothing = options.label_smoothing;
    float* dz = gradient_.target(gradient_row);
    const float spread = label_smoothing / static_cast<float>(classes_);
    for (std::int64_t c = 0; c < classes_; ++c) {
      const float target = spread + (c == label ? 1 - label_smoothing : 0);
      dz[c] = gradient_scale * (static_cast<float>(exponentials_[c] / total_) - target);
    }
    if (options.teacher.logits != nullptr) add_teacher(options.teacher, gradient_scale, dz);
    gradient_.write(gradient_row, classes_);
  }

  void add_teacher(const LossTeacher& teacher, float gradient_scale, float* dz) const {
    const double factor = double{gradient_scale} * teacher.weight * teacher.temperature;
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double soft = factor * (soft_->student[c] - soft_->teacher[c]);
      dz[c] = static_cast<float>((1 - double{teacher.weight}) * dz[c] + soft);
    }
  }

  const std::int64_t classes_;
  const std::int64_t bytes_per_row_;
  // A row with a teacher's.
  struct Soft {
    Soft(DataType type, std::int64_t classes)
        : logits(type, classes), student(classes), teacher(classes) {}
    Floats logits;                          // the teacher's
    AlignedArray<double> student, teacher;  // q and r
  };

  Floats logits_, gradient_;  // one row each
  AlignedArray<float> exponentials_;
  const DataType type_;
  std::optional<Soft> soft_;  // once there is a teacher
  double total_ = 0;
};

}  // namespace

std::unique_ptr<SoftmaxCrossEntropyOp> reference_softmax_cross_entropy(std::int64_t classes,
                                                                       DataType type) {
  return std::make_unique<ReferenceSoftmaxCrossEntropy>(classes, type);
}

}  // namespace fettle::kernels
