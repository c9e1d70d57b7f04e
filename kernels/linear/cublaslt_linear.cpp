// Linear layers by cuBLASLt: the three products of reference.h on tensor cores.
//
// On an H100 a product of n samples does 2 n inputs outputs FLOP on (n inputs + n outputs +
// inputs outputs) numbers, so in bf16 (989 TFLOP/s, 3.35 TB/s) it is bound by arithmetic from some
// 300 samples, inputs and outputs on, and by bytes, or by being launched at all, below. What can be
// fused is, then: bias and ReLU in the forward product; the bias gradient in the product for the
// weights, where no ReLU has to be masked first; the sum into the fp32 gradient in the same (beta
// 1), so no 16-bit partial sum is ever rounded. With ReLU one pass of ours masks dy and adds up the
// bias gradient (bias_gradient.h).
//
// A GELU next to the layer is fused, too: forward the product writes what GELU takes and what it
// gives, and backward the product by the weights is multiplied by GELU's slope. That saves, of the
// wide arrays of a transformer, reading one forward, and writing and reading one backward. The
// library computes both from the fp32 sums, not from what has been rounded to the layer's type. Its
// GELU is the tanh form, and NVIDIA does not say to how many bits, so fp32 is left to ours unless
// TF32 may round it anyway. What it cannot fuse is a plain product and a GELU by itself.
//
// The bias is rounded to the layer's type, as the library wants it and torch.autocast does.
#include <optional>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/plan_cache.h"
#include "kernels/gelu/cuda.h"
#include "kernels/linear/add_slices.h"
#include "kernels/linear/bias_gradient.h"
#include "kernels/linear/cuda.h"

namespace fettle::kernels {
namespace {

using cuda::Epilogue;
using cuda::MatrixProduct;

// Of one number of samples.
struct Plans {
  MatrixProduct forward;
  MatrixProduct input;
  MatrixProduct weights;
  bool sums_bias = false;  // the last has the bias gradient, too
  // With GELU, where that can be fused.
  std::optional<MatrixProduct> forward_gelu = std::nullopt;
  std::optional<MatrixProduct> input_gelu = std::nullopt;
};

Epilogue forward_epilogue(const LinearShape& shape) {
  if (shape.bias) return shape.relu ? Epilogue::kBiasRelu : Epilogue::kBias;
  return shape.relu ? Epilogue::kRelu : Epilogue::kNothing;
}

// With the bias gradient where that can be had.
Result<std::pair<MatrixProduct, bool>> plan_weights(cuda::Device& device, const LinearShape& shape,
                                                    const PlanOptions& plan, std::int64_t samples) {
  const cuda::MatrixShape product{shape.outputs, shape.inputs, samples, /*a_transposed=*/true};
  cuda::MatrixOptions options{plan.type, DataType::kFloat32, /*add=*/true, plan.tf32};
  if (shape.bias && !shape.relu) {
    options.epilogue = Epilogue::kSumOfA;
    auto fused = MatrixProduct::plan(device, product, options);
    if (fused.ok()) return std::pair{std::move(fused).value(), true};
    options.epilogue = Epilogue::kNothing;
  }
  FETTLE_ASSIGN(MatrixProduct weights, MatrixProduct::plan(device, product, options));
  return std::pair{std::move(weights), false};
}

// None where there is no such GELU, or it goes by itself. What is wrong with the library altogether
// the plain products have told.
std::optional<MatrixProduct> plan_gelu(cuda::Device& device, std::optional<GeluForm> gelu,
                                       const cuda::MatrixShape& product,
                                       const cuda::MatrixOptions& options) {
  const bool exact_numbers = options.type == DataType::kFloat32 && !options.tf32;
  if (gelu != GeluForm::kTanh || exact_numbers || product.columns % cuda::kGeluColumns != 0) {
    return std::nullopt;
  }
  auto planned = MatrixProduct::plan(device, product, options);
  if (!planned.ok()) return std::nullopt;
  return std::move(planned).value();
}

Result<std::unique_ptr<Plans>> make_plans(cuda::Device& device, const LinearShape& shape,
                                          const PlanOptions& plan, std::int64_t samples) {
  const cuda::MatrixShape of_output{samples, shape.outputs, shape.inputs, /*a_transposed=*/false,
                                    /*b_transposed=*/true};
  const cuda::MatrixShape of_input{samples, shape.inputs, shape.outputs};
  cuda::MatrixOptions options{plan.type, plan.type, /*add=*/false, plan.tf32,
                              forward_epilogue(shape)};
  FETTLE_ASSIGN(MatrixProduct forward, MatrixProduct::plan(device, of_output, options));
  options.epilogue = Epilogue::kNothing;
  FETTLE_ASSIGN(MatrixProduct input, MatrixProduct::plan(device, of_input, options));
  FETTLE_ASSIGN(auto weights, plan_weights(device, shape, plan, samples));
  auto plans = std::make_unique<Plans>(
      Plans{std::move(forward), std::move(input), std::move(weights.first), weights.second});
  options.epilogue = shape.bias ? Epilogue::kBiasGelu : Epilogue::kGelu;
  plans->forward_gelu = plan_gelu(device, shape.gelu_after, of_output, options);
  options.epilogue = Epilogue::kGeluGradient;
  plans->input_gelu = plan_gelu(device, shape.gelu_before, of_input, options);
  return plans;
}

// nullptr where there is none.
std::unique_ptr<GeluOp> gelu_by_itself(cuda::Device& device, std::optional<GeluForm> form,
                                       DataType type) {
  return form ? cuda_gelu(device, *form, type) : nullptr;
}

class CublasLtLinear : public LinearOp {
 public:
  CublasLtLinear(cuda::Device& device, const LinearShape& shape, const PlanOptions& plan,
                 std::unique_ptr<LinearOp> own)
      : device_(device),
        shape_(shape),
        plan_(plan),
        bias_gradient_(device, plan.type, shape.outputs, shape.bias, shape.relu),
        own_(std::move(own)),
        gelu_after_(gelu_by_itself(device, shape.gelu_after, plan.type)),
        gelu_before_(gelu_by_itself(device, shape.gelu_before, plan.type)) {}

  // Plans the largest number of samples.
  Status prepare() {
    FETTLE_TRY(bias_gradient_.reserve(plan_.max_samples));
    FETTLE_TRY(device_.reserve_scratch(sums_offset() + sums_bytes()));
    FETTLE_ASSIGN(std::unique_ptr<Plans> plans,
                  make_plans(device_, shape_, plan_, plan_.max_samples));
    plans_.put(plan_.max_samples, std::move(plans));
    return success();
  }

  void set_weights(const LayerWeights& from) override {
    own_->set_weights(from);
    weights_ = from.weights;
    bias_ = shape_.bias ? from.typed_bias : nullptr;
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    Plans* plans = plans_for(samples);
    if (plans == nullptr) return own_->forward(samples, x, y);
    plans->forward.run(x, weights_, y, bias_);
  }

  void forward_gelu(std::int64_t samples, ConstBuffer x, Buffer y, Buffer activated) override {
    CHECK(gelu_after_ != nullptr, "a GELU comes after this layer");
    Plans* plans = plans_for(samples);
    if (plans == nullptr) return own_->forward_gelu(samples, x, y, activated);
    if (plans->forward_gelu) return plans->forward_gelu->run(x, weights_, activated, bias_, y);
    plans->forward.run(x, weights_, y, bias_);
    gelu_after_->forward(samples * shape_.outputs, y, activated);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    Plans* plans = plans_for(samples);
    if (plans == nullptr) {
      return own_->backward(samples, x, y, dy, dx, weight_gradient, bias_gradient);
    }
    add_gradients(*plans, samples, x, y, dy, weight_gradient, bias_gradient);
    if (dx != nullptr) plans->input.run(dy, weights_, dx, nullptr);
  }

  void backward_gelu(std::int64_t samples, ConstBuffer before, ConstBuffer x, ConstBuffer y,
                     Buffer dy, Buffer dx, float* weight_gradient, float* bias_gradient) override {
    CHECK(gelu_before_ != nullptr, "a GELU comes before this layer");
    Plans* plans = plans_for(samples);
    if (plans == nullptr) {
      return own_->backward_gelu(samples, before, x, y, dy, dx, weight_gradient, bias_gradient);
    }
    add_gradients(*plans, samples, x, y, dy, weight_gradient, bias_gradient);
    if (dx == nullptr) return;
    if (plans->input_gelu) return plans->input_gelu->run(dy, weights_, dx, nullptr, before);
    plans->input.run(dy, weights_, dx, nullptr);
    gelu_before_->backward(samples * shape_.inputs, before, dx, dx);
  }

 private:
  // Of the parameters. Masks dy by a fused ReLU first.
  void add_gradients(Plans& plans, std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                     float* weight_gradient, float* bias_gradient) {
    if (!plans.sums_bias) bias_gradient_.run(samples, y, dy, bias_gradient);
    float* sums = plans.sums_bias ? scratch_sums() : nullptr;
    plans.weights.run(dy, x, weight_gradient, sums);
    if (sums != nullptr) cuda::add_slices(device_, 1, shape_.outputs, sums, bias_gradient);
  }

  // A size that only we have an algorithm for is ours: nullptr.
  Plans* plans_for(std::int64_t samples) {
    return plans_.find(samples, [&](std::int64_t count) {
      auto made = make_plans(device_, shape_, plan_, count);
      if (!made.ok()) cuda::say_ours_does_it(made.error());
      return made.ok() ? std::move(made).value() : nullptr;
    });
  }

  // Behind the library's workspace.
  static constexpr std::int64_t sums_offset() { return MatrixProduct::kWorkspaceBytes; }
  std::int64_t sums_bytes() const {
    return shape_.outputs * static_cast<std::int64_t>(sizeof(float));
  }
  float* scratch_sums() {
    auto* scratch = static_cast<std::byte*>(device_.scratch(sums_offset() + sums_bytes()));
    return reinterpret_cast<float*>(scratch + sums_offset());
  }

  cuda::Device& device_;
  const LinearShape shape_;
  const PlanOptions plan_;
  cuda::BiasGradient bias_gradient_;
  std::unique_ptr<LinearOp> own_;
  std::unique_ptr<GeluOp> gelu_after_, gelu_before_;  // nullptr: there is none
  cuda::PlanCache<Plans> plans_;
  ConstBuffer weights_ = nullptr;
  ConstBuffer bias_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<LinearOp>> cublaslt_linear(cuda::Device& device, const LinearShape& shape,
                                                  const PlanOptions& plan) {
  FETTLE_ASSIGN(auto own, own_linear(device, shape, plan));
  auto op = std::make_unique<CublasLtLinear>(device, shape, plan, std::move(own));
  FETTLE_TRY(op->prepare());
  return std::unique_ptr<LinearOp>(std::move(op));
}

}  // namespace fettle::kernels
