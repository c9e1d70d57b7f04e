#include "kernels/shapes.h"

#include <string>

#include "base/check.h"

namespace fettle::kernels {
namespace {

// Max pooling stores the place of a window's largest input in 16 bits.
constexpr std::int64_t kMaxWindow = 65535;
// A GPU indexes the elements of a sample with 32 bits.
constexpr std::int64_t kMaxSampleElements = 0x7FFFFFFF;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

std::string of_samples(const PlanOptions& plan, std::int64_t samples) {
  const char* const type = plan.type == DataType::kBFloat16  ? "bf16"
                           : plan.type == DataType::kFloat16 ? "fp16"
                           : plan.tf32                       ? "tf32"
                                                             : "fp32";
  return ", " + std::to_string(samples) + " samples, " + type;
}

Status check_positive(std::string_view what, std::int64_t found) {
  if (found > 0) return success();
  return invalid(std::string(what) + " is " + std::to_string(found) + ", expected at least 1");
}

Status check_plan(const PlanOptions& plan, std::int64_t elements_per_sample) {
  FETTLE_TRY(check_positive("the largest number of samples", plan.max_samples));
  // By division, because the product may overflow.
  if (elements_per_sample <= kMaxElements / plan.max_samples) return success();
  return invalid(std::to_string(plan.max_samples) + " samples of " +
                 std::to_string(elements_per_sample) + " elements are more than fit in memory");
}

Status check_image(const ImageShape& image) {
  FETTLE_TRY(check_positive("the image height", image.height));
  FETTLE_TRY(check_positive("the image width", image.width));
  return check_positive("the number of channels", image.channels);
}

Status check_epsilon(std::string_view norm, float epsilon) {
  if (epsilon > 0) return success();
  return invalid("the epsilon of " + std::string(norm) + " is " + std::to_string(epsilon) +
                 ", expected a positive number");
}

Status check_fits(std::int64_t kernel, std::int64_t length) {
  if (kernel <= length) return success();
  return invalid("a kernel of " + std::to_string(kernel) + " does not fit an input of " +
                 std::to_string(length) +
                 " (with padding): use a smaller kernel, more padding, or " +
                 "fewer layers that shrink the image");
}

}  // namespace

std::string describe(const LinearShape& shape, const PlanOptions& plan, std::int64_t samples) {
  return "linear " + std::to_string(shape.inputs) + " to " + std::to_string(shape.outputs) +
         of_samples(plan, samples);
}

std::string describe(const ConvShape& s, const PlanOptions& plan, std::int64_t samples) {
  return "conv " + std::to_string(s.input.height) + "x" + std::to_string(s.input.width) + "x" +
         std::to_string(s.input.channels) + " to " + std::to_string(s.channels) +
         " channels, kernel " + std::to_string(s.kernel) + ", stride " + std::to_string(s.stride) +
         ", padding " + std::to_string(s.padding) + of_samples(plan, samples);
}

std::string describe(const AttentionShape& s, const PlanOptions& plan, std::int64_t samples) {
  return "attention of " + std::to_string(s.length) + " tokens, " + std::to_string(s.heads) +
         " heads of " + std::to_string(s.width) + of_samples(plan, samples);
}

Status check_shape(const LinearShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_positive("the number of inputs of a linear layer", shape.inputs));
  FETTLE_TRY(check_positive("the number of outputs of a linear layer", shape.outputs));
  if (shape.relu && shape.gelu_after) {
    return invalid(
        "a linear layer with both ReLU and GELU behind it: expected at most one of them");
  }
  return check_plan(plan, shape.inputs + shape.outputs);
}

Status check_shape(const ConvShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_image(shape.input));
  FETTLE_TRY(check_positive("the number of output channels", shape.channels));
  FETTLE_TRY(check_positive("the kernel size", shape.kernel));
  FETTLE_TRY(check_positive("the stride", shape.stride));
  if (shape.padding < 0 || shape.padding >= shape.kernel) {
    return invalid("a padding of " + std::to_string(shape.padding) + " with a kernel of " +
                   std::to_string(shape.kernel) + ": expected 0 to kernel - 1");
  }
  FETTLE_TRY(check_fits(shape.kernel, shape.input.height + 2 * shape.padding));
  FETTLE_TRY(check_fits(shape.kernel, shape.input.width + 2 * shape.padding));
  return check_plan(plan, shape.input.size() + shape.output().size());
}

Status check_shape(const PoolShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_image(shape.input));
  FETTLE_TRY(check_positive("the kernel height", shape.kernel_height));
  FETTLE_TRY(check_positive("the kernel width", shape.kernel_width));
  FETTLE_TRY(check_positive("the stride", shape.stride));
  FETTLE_TRY(check_fits(shape.kernel_height, shape.input.height));
  FETTLE_TRY(check_fits(shape.kernel_width, shape.input.width));
  if (shape.kernel_height > kMaxWindow / shape.kernel_width) {
    return invalid("a pooling window of " + std::to_string(shape.kernel_height) + " x " +
                   std::to_string(shape.kernel_width) + ": expected at most " +
                   std::to_string(kMaxWindow) + " elements");
  }
  return check_plan(plan, shape.input.size());
}

Status check_shape(const BatchNormShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_image(shape.input));
  FETTLE_TRY(check_epsilon("batch norm", shape.epsilon));
  if (!(shape.momentum >= 0 && shape.momentum <= 1)) {
    return invalid("the momentum of batch norm is " + std::to_string(shape.momentum) +
                   ", expected 0 to 1");
  }
  return check_plan(plan, shape.input.size());
}

Status check_shape(const RowNormShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_image(shape.input));
  FETTLE_TRY(
      check_epsilon(shape.kind == RowNormKind::kLayer ? "layer norm" : "RMS norm", shape.epsilon));
  return check_plan(plan, shape.input.size());
}

Status check_shape(const AttentionShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_positive("the number of tokens", shape.length));
  FETTLE_TRY(check_positive("the number of heads", shape.heads));
  FETTLE_TRY(check_positive("the width of a head", shape.width));
  return check_plan(plan, 3 * shape.length * shape.channels());
}

Status check_shape(const EmbeddingShape& shape, const PlanOptions& plan) {
  FETTLE_TRY(check_positive("the size of the vocabulary", shape.vocabulary));
  FETTLE_TRY(check_positive("the number of tokens", shape.length));
  FETTLE_TRY(check_positive("the number of channels", shape.channels));
  return check_plan(plan, shape.length * shape.channels);
}

Status check_shape(const Samples& samples, const PlanOptions& plan) {
  FETTLE_TRY(check_image(samples.shape));
  if (samples.shape.size() > kMaxSampleElements) {
    return invalid("a sample of " + std::to_string(samples.shape.size()) +
                   " elements: expected at most " + std::to_string(kMaxSampleElements));
  }
  return check_plan(plan, samples.shape.size());
}

void check_end(const BatchNormShape& shape, const BlockEnd& end) {
  CHECK(!shape.relu || (end.shortcut == nullptr && !end.relu),
        "a batch norm with a fused ReLU ends no block");
}

}  // namespace fettle::kernels
