// Linear layers by cuBLASLt: the three products of reference.cpp on tensor cores.
//
// On an H100 a product of n samples does 2 n inputs outputs FLOP on (n inputs + n outputs + inputs
// outputs) numbers, so in bf16 (989 TFLOP/s, 3.35 TB/s) it is bound by arithmetic from some 300
// samples, inputs and outputs on, and below by bytes, or by the launch itself. So everything that
// can be fused is: bias and ReLU in the forward product; the bias gradient in the product for the
// weights, unless a ReLU has to be masked first; the sum into the fp32 gradient in the same (beta
// 1), so no 16-bit partial sum is ever rounded. With ReLU one pass of ours masks dy and sums the
// bias gradient (bias_gradient.h).
//
// A GELU next to the layer is fused, too: forward the product writes both the input and the output
// of GELU, and backward the product by the weights is multiplied by GELU's slope. For the wide
// arrays of a transformer, that saves one read in forward, and one write and one read in backward.
// The library computes both from the fp32 sums, not from numbers rounded to the layer's type. Its
// GELU is the tanh form, and NVIDIA does not document its precision, so our own kernels do fp32
// unless TF32 may round it anyway. If the library cannot fuse, a plain product and a separate GELU
// run.
//
// The bias is rounded to the layer's type, as the library requires and torch.autocast does.
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/libraries/cublaslt.h"
#include "kernels/cuda/libraries/fall_back.h"
#include "kernels/cuda/libraries/pass_plans.h"
#include "kernels/cuda/operations.h"
#include "kernels/linear/add_slices.h"
#include "kernels/linear/bias_gradient.h"
#include "kernels/shapes.h"

namespace fettle::kernels {
namespace {

using cuda::Epilogue;
using cuda::MatrixProduct;

// Plans for one number of samples.
struct Forward {
  MatrixProduct plain;
  std::optional<MatrixProduct> gelu = std::nullopt;  // nullopt: cannot be fused
};
struct Backward {
  std::optional<MatrixProduct> input;  // nullopt: dx is not wanted
  MatrixProduct weights;
  bool sums_bias = false;                            // the product also gives the bias gradient
  std::optional<MatrixProduct> gelu = std::nullopt;  // instead of `input`
};
Epilogue forward_epilogue(const LinearShape& shape) {
  if (shape.bias) return shape.relu ? Epilogue::kBiasRelu : Epilogue::kBias;
  return shape.relu ? Epilogue::kRelu : Epilogue::kNothing;
}

// Plans the passes of a layer for one number of samples.
class Planner {
 public:
  Planner(cuda::LibraryPlans& libraries, const LinearShape& shape, const PlanOptions& plan,
          std::int64_t samples)
      : libraries_(libraries), shape_(shape), plan_(plan), samples_(samples) {}

  // Return nullopt if our own kernels may do the pass. Errors: the library's others.
  Result<std::optional<Forward>> forward() { return plan_pass("forward", plan_forward()); }
  Result<std::optional<Backward>> backward() { return plan_pass("backward", plan_backward()); }

 private:
  // `planned`: the plan of the pass; fused_ names the work fused into its kernels.
  template <class Pass>
  Result<std::optional<Pass>> plan_pass(const char* pass, Result<Pass> planned) {
    return cuda::plan_or_own(libraries_, by_library(pass), std::move(planned));
  }

  Implementation by_library(const char* pass) const {
    return {describe(shape_, plan_, samples_), pass, "cuBLASLt", fused_, ""};
  }

  Result<Forward> plan_forward() {
    fused_ = shape_.bias ? "bias" : "";
    if (shape_.relu) note_fused("ReLU");
    const cuda::MatrixShape product{samples_, shape_.outputs, shape_.inputs,
                                    /*a_transposed=*/false, /*b_transposed=*/true};
    cuda::MatrixOptions options = of_activations();
    options.epilogue = forward_epilogue(shape_);
    FETTLE_ASSIGN(MatrixProduct plain, plan(product, options));
    // forward_gelu() runs this product if it exists. The other epilogue loses no ReLU: a layer
    // before a GELU has no ReLU.
    options.epilogue = shape_.bias ? Epilogue::kBiasGelu : Epilogue::kGelu;
    auto gelu = fused_gelu("forward", shape_.gelu_after, product, options);
    return Forward{std::move(plain), std::move(gelu)};
  }

  Result<Backward> plan_backward() {
    fused_.clear();
    FETTLE_ASSIGN(auto weights, of_weights());
    Backward passes{std::nullopt, std::move(weights.first), weights.second};
    if (!plan_.input_gradient) return passes;
    const cuda::MatrixShape product{samples_, shape_.inputs, shape_.outputs};
    cuda::MatrixOptions options = of_activations();
    FETTLE_ASSIGN(passes.input, plan(product, options));
    options.epilogue = Epilogue::kGeluGradient;
    passes.gelu = fused_gelu("backward", shape_.gelu_before, product, options);
    return passes;
  }

  // The second is whether the product also gives the bias gradient, which it does if cuBLASLt can.
  Result<std::pair<MatrixProduct, bool>> of_weights() {
    const cuda::MatrixShape product{shape_.outputs, shape_.inputs, samples_, /*a_transposed=*/true};
    cuda::MatrixOptions options{plan_.type, DataType::kFloat32, /*add=*/true, plan_.tf32};
    if (shape_.bias && !shape_.relu && cuda::wants_epilogues()) {
      options.epilogue = Epilogue::kSumOfA;
      auto fused = fused_product("backward", "bias gradient", product, options);
      if (fused) return std::pair{std::move(*fused), true};
      options.epilogue = Epilogue::kNothing;
    }
    FETTLE_ASSIGN(MatrixProduct weights, plan(product, options));
    return std::pair{std::move(weights), false};
  }

  // Returns nullopt if the layer has no such GELU, or a separate kernel computes it.
  std::optional<MatrixProduct> fused_gelu(const char* pass, std::optional<GeluForm> gelu,
                                          const cuda::MatrixShape& product,
                                          const cuda::MatrixOptions& options) {
    const bool exact_numbers = options.type == DataType::kFloat32 && !options.tf32;
    const bool fits = product.columns % cuda::kGeluColumns == 0;
    if (gelu != GeluForm::kTanh || exact_numbers || !fits || !cuda::wants_epilogues()) return {};
    return fused_product(pass, "GELU", product, options);
  }

  // Plans a product with an optional epilogue. Returns nullopt if cuBLASLt refuses it.
  std::optional<MatrixProduct> fused_product(const char* pass, const char* fusion,
                                             const cuda::MatrixShape& product,
                                             const cuda::MatrixOptions& options) {
    auto fused = cuda::plan_if_there(libraries_, by_library(pass), fusion, plan(product, options));
    if (fused) note_fused(fusion);
    return fused;
  }

  cuda::MatrixOptions of_activations() const {
    return {plan_.type, plan_.type, /*add=*/false, plan_.tf32};
  }

  // Times plans for the largest number of samples only: remainders are rare.
  Result<MatrixProduct> plan(const cuda::MatrixShape& product, const cuda::MatrixOptions& options) {
    return MatrixProduct::plan(libraries_, product, options, samples_ == plan_.max_samples);
  }

  // Notes work that is fused into the products, for the report of the plan.
  void note_fused(const char* what) { fused_ += (fused_.empty() ? "" : ", ") + std::string(what); }

  cuda::LibraryPlans& libraries_;
  const LinearShape& shape_;
  const PlanOptions& plan_;
  const std::int64_t samples_;
  std::string fused_;
};

// Returns nullptr without `form`.
std::unique_ptr<GeluOp> gelu_by_itself(cuda::Device& device, std::optional<GeluForm> form,
                                       DataType type) {
  return form ? cuda_gelu(device, *form, type) : nullptr;
}

class CublasLtLinear : public LinearOp {
 public:
  CublasLtLinear(cuda::LibraryPlans& libraries, const LinearShape& shape, const PlanOptions& plan)
      : libraries_(libraries),
        device_(libraries.device()),
        shape_(shape),
        plan_(plan),
        bias_gradient_(device_, plan.type, shape.outputs, shape.bias, shape.relu),
        gelu_after_(gelu_by_itself(device_, shape.gelu_after, plan.type)),
        gelu_before_(gelu_by_itself(device_, shape.gelu_before, plan.type)),
        plans_({.forward = [this](std::int64_t samples) { return planner(samples).forward(); },
                .backward = [this](std::int64_t samples) { return planner(samples).backward(); },
                .own = [this] { return make_own(); }}) {}

  // Plans the largest number of samples.
  Status prepare() {
    FETTLE_TRY(bias_gradient_.reserve(plan_.max_samples));
    FETTLE_TRY(device_.reserve_scratch(sums_offset() + sums_bytes()));
    FETTLE_TRY(device_.reserve_branch_scratch(sums_offset() + sums_bytes()));
    return plans_.prepare(plan_.max_samples);
  }

  void set_weights(const LayerWeights& from) override {
    from_ = from;
    if (auto* own = plans_.own_if_made()) own->set_weights(from);
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    Forward* plans = plans_.forward(samples);
    if (plans == nullptr) return plans_.own().forward(samples, x, y);
    plans->plain.run(x, from_.weights, y, bias());
  }

  void forward_gelu(std::int64_t samples, ConstBuffer x, Buffer y, Buffer activated) override {
    CHECK(gelu_after_ != nullptr, "a GELU comes after this layer");
    Forward* plans = plans_.forward(samples);
    if (plans == nullptr) return plans_.own().forward_gelu(samples, x, y, activated);
    // The result of the fused product is the activation; y is the epilogue's matrix.
    if (plans->gelu) return plans->gelu->run(x, from_.weights, activated, bias(), y);
    plans->plain.run(x, from_.weights, y, bias());
    gelu_after_->forward(samples * shape_.outputs, y, activated);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    Backward* plans = plans_.backward(samples);
    if (plans == nullptr) {
      return plans_.own().backward(samples, x, y, dy, dx, weight_gradient, bias_gradient);
    }
    // First, because both products read the masked dy.
    mask_and_sum(*plans, samples, y, dy, bias_gradient);
    if (dx == nullptr) return add_gradients(*plans, x, dy, weight_gradient, bias_gradient);
    device_.run_beside([&] { add_gradients(*plans, x, dy, weight_gradient, bias_gradient); },
                       [&] { input_of(*plans).run(dy, from_.weights, dx, nullptr); });
  }

  void backward_gelu(std::int64_t samples, ConstBuffer before, ConstBuffer x, ConstBuffer y,
                     Buffer dy, Buffer dx, float* weight_gradient, float* bias_gradient) override {
    CHECK(gelu_before_ != nullptr, "a GELU comes before this layer");
    Backward* plans = plans_.backward(samples);
    if (plans == nullptr) {
      return plans_.own().backward_gelu(samples, before, x, y, dy, dx, weight_gradient,
                                        bias_gradient);
    }
    // First, because both products read the masked dy.
    mask_and_sum(*plans, samples, y, dy, bias_gradient);
    if (dx == nullptr) return add_gradients(*plans, x, dy, weight_gradient, bias_gradient);
    device_.run_beside([&] { add_gradients(*plans, x, dy, weight_gradient, bias_gradient); },
                       [&] { through_gelu(*plans, samples, before, dy, dx); });
  }

 private:
  // Masks dy by a fused ReLU, and sums the gradient of the bias unless the library does.
  void mask_and_sum(const Backward& plans, std::int64_t samples, ConstBuffer y, Buffer dy,
                    float* bias_gradient) {
    if (!plans.sums_bias) bias_gradient_.mask_and_sum(samples, y, dy, bias_gradient);
  }

  void through_gelu(Backward& plans, std::int64_t samples, ConstBuffer before, ConstBuffer dy,
                    Buffer dx) {
    if (plans.gelu) return plans.gelu->run(dy, from_.weights, dx, nullptr, before);
    input_of(plans).run(dy, from_.weights, dx, nullptr);
    gelu_before_->backward(samples * shape_.inputs, before, dx, dx);
  }

  static MatrixProduct& input_of(Backward& plans) {
    CHECK(plans.input.has_value(), "the plan says that nobody asks for dx");
    return *plans.input;
  }

  void add_gradients(Backward& plans, ConstBuffer x, ConstBuffer dy, float* weight_gradient,
                     float* bias_gradient) {
    if (weight_gradient == nullptr) return;  // frozen
    // The sums go through the scratch, because the library overwrites its vector (kSumOfA).
    float* sums = plans.sums_bias ? scratch_sums() : nullptr;
    plans.weights.run(dy, x, weight_gradient, sums);
    if (sums == nullptr) return;
    cuda::add_slices(device_, /*slices=*/1, shape_.outputs, sums, bias_gradient);
  }

  Planner planner(std::int64_t samples) const { return {libraries_, shape_, plan_, samples}; }

  Result<std::unique_ptr<LinearOp>> make_own() const {
    FETTLE_ASSIGN(auto own, own_linear(device_, shape_, plan_));
    own->set_weights(from_);
    return own;
  }

  ConstBuffer bias() const { return shape_.bias ? from_.typed_bias : nullptr; }

  // Offset of the sums, behind the library's workspace.
  static constexpr std::int64_t sums_offset() { return MatrixProduct::kWorkspaceBytes; }
  std::int64_t sums_bytes() const {
    return shape_.outputs * static_cast<std::int64_t>(sizeof(float));
  }
  float* scratch_sums() {
    auto* scratch = static_cast<std::byte*>(device_.scratch(sums_offset() + sums_bytes()));
    return reinterpret_cast<float*>(scratch + sums_offset());
  }

  cuda::LibraryPlans& libraries_;
  cuda::Device& device_;
  const LinearShape shape_;
  const PlanOptions plan_;
  cuda::BiasGradient bias_gradient_;
  std::unique_ptr<GeluOp> gelu_after_, gelu_before_;  // nullptr without that GELU
  LayerWeights from_;
  cuda::PassPlans<Forward, Backward, LinearOp> plans_;
};

}  // namespace

Result<std::unique_ptr<LinearOp>> cublaslt_linear(cuda::LibraryPlans& libraries,
                                                  const LinearShape& shape,
                                                  const PlanOptions& plan) {
  auto op = std::make_unique<CublasLtLinear>(libraries, shape, plan);
  FETTLE_TRY(op->prepare());
  return std::unique_ptr<LinearOp>(std::move(op));
}

}  // namespace fettle::kernels
