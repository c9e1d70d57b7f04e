// Convolutions by cuDNN, NHWC, on tensor cores in bf16 and fp16.
//
// On an H100 a 3 x 3 convolution does 18 FLOP by in channels for each output number in bf16: with
// 64 channels and more it is bound by arithmetic, with fewer by bytes. So bias and ReLU are fused
// into the forward pass if cuDNN has an engine for it; otherwise one pass of ours adds them
// (add_bias.h). Weight gradients are requested in fp32, so that the numbers accumulated over
// micro-batches were never rounded. If cuDNN has a deterministic engine only in the type of the
// activations, or a clearly faster one (takes_exact), they are summed in fp32, rounded once a call,
// and added to the fp32 gradient, as torch.autocast does. One pass of ours masks dy by the ReLU and
// sums the bias gradient (linear/bias_gradient.h).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "kernels/conv/add_bias.h"
#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/libraries/fall_back.h"
#include "kernels/cuda/libraries/pass_plans.h"
#include "kernels/cuda/libraries/plan_chooser.h"
#include "kernels/cuda/operations.h"
#include "kernels/linear/add_slices.h"
#include "kernels/linear/bias_gradient.h"
#include "kernels/shapes.h"

namespace fettle::kernels {
namespace {

using cuda::ConvPass;
using cuda::Cudnn;
using cuda::CudnnPlan;
using cuda::Role;

// Plans for one number of samples.
struct Forward {
  CudnnPlan plan;
  bool fused = false;  // includes bias and ReLU
};
struct Backward {
  std::optional<CudnnPlan> input;  // nullopt: dx is not wanted
  CudnnPlan weights;
  DataType gradient = DataType::kFloat32;  // type of the weight gradient that the plan writes
};
// Plans the passes of a layer for one number of samples.
class Planner {
 public:
  Planner(cuda::LibraryPlans& libraries, const Cudnn& cudnn, const ConvShape& shape,
          const PlanOptions& plan, std::int64_t samples)
      : libraries_(libraries), cudnn_(cudnn), shape_(shape), plan_(plan), samples_(samples) {}

  // Return nullopt if our own kernels may do the pass. Errors: the library's others.
  Result<std::optional<Forward>> forward() {
    Result<Forward> planned = plan_forward();
    const bool fused = planned.ok() && planned->fused;
    return cuda::plan_or_own(libraries_, by_library("forward", fused ? fusion() : ""),
                             std::move(planned));
  }
  Result<std::optional<Backward>> backward() {
    Result<Backward> planned = plan_backward();
    Implementation by = by_library("backward", "");
    const bool rounded = planned.ok() && planned->gradient != DataType::kFloat32;
    if (rounded) by.by += ", weight gradient rounded to 16 bits";
    return cuda::plan_or_own(libraries_, by, std::move(planned));
  }

 private:
  Implementation by_library(const char* pass, std::string fused) const {
    return {describe(shape_, plan_, samples_), pass, "cuDNN", std::move(fused), ""};
  }
  std::string fusion() const {
    return std::string(shape_.bias ? "bias" : "") + (shape_.bias && shape_.relu ? ", " : "") +
           (shape_.relu ? "ReLU" : "");
  }

  Result<Forward> plan_forward() {
    if ((shape_.bias || shape_.relu) && cuda::wants_epilogues()) {
      auto fused = cuda::plan_if_there(libraries_, by_library("forward", ""), fusion(),
                                       plan(ConvPass::kForwardFused));
      if (fused) return Forward{std::move(*fused), true};
    }
    FETTLE_ASSIGN(CudnnPlan plain, plan(ConvPass::kForward));
    return Forward{std::move(plain), false};
  }

  Result<Backward> plan_backward() {
    FETTLE_ASSIGN(Backward passes, plan_weights());
    if (!plan_.input_gradient) return passes;
    FETTLE_ASSIGN(passes.input, plan(ConvPass::kInput));
    return passes;
  }

  // Plans the weight gradient in fp32 if cuDNN's engine for it is about as fast; else in the type
  // of the activations.
  Result<Backward> plan_weights() {
    auto exact = plan(ConvPass::kWeightsFloat32);
    if (exact.ok() && plan_.type == DataType::kFloat32) {  // then kWeights is the same
      return Backward{std::nullopt, std::move(exact).value(), DataType::kFloat32};
    }
    // Only a missing plan has a replacement.
    if (!exact.ok() && exact.error().code != ErrorCode::kNotFound) return exact.error();
    auto rounded = plan(ConvPass::kWeights);
    if (!exact.ok() && !rounded.ok()) return rounded.error();
    const bool takes_exact =
        !rounded.ok() ||
        (exact.ok() && cuda::takes_exact(exact->microseconds(), rounded->microseconds()));
    if (takes_exact) return Backward{std::nullopt, std::move(exact).value(), DataType::kFloat32};
    return Backward{std::nullopt, std::move(rounded).value(), plan_.type};
  }

  // Times plans for the largest number of samples only: remainders are rare.
  Result<CudnnPlan> plan(ConvPass pass) {
    return cuda::plan_conv(cudnn_, shape_, plan_, samples_, pass,
                           {&libraries_, /*timed=*/samples_ == plan_.max_samples});
  }

  cuda::LibraryPlans& libraries_;
  const Cudnn& cudnn_;
  const ConvShape& shape_;
  const PlanOptions& plan_;
  const std::int64_t samples_;
};

class CudnnConv : public WeightedOp {
 public:
  CudnnConv(cuda::LibraryPlans& libraries, const Cudnn& cudnn, const ConvShape& shape,
            const PlanOptions& plan)
      : libraries_(libraries),
        device_(libraries.device()),
        cudnn_(cudnn),
        shape_(shape),
        plan_(plan),
        bias_gradient_(device_, plan.type, shape.channels, shape.bias, shape.relu),
        plans_({.forward = [this](std::int64_t samples) { return planner(samples).forward(); },
                .backward = [this](std::int64_t samples) { return planner(samples).backward(); },
                .own = [this] { return make_own(); }}) {}

  // Plans the largest number of samples.
  Status prepare() {
    FETTLE_TRY(bias_gradient_.reserve(pixels_of(plan_.max_samples)));
    FETTLE_TRY(plans_.prepare(plan_.max_samples));
    FETTLE_TRY(device_.reserve_scratch(scratch_bytes()));
    const Backward* backward = plans_.backward(plan_.max_samples);
    // Without a plan make_own() has reserved what our own kernels need.
    return backward == nullptr ? success()
                               : device_.reserve_branch_scratch(weights_scratch(*backward));
  }

  void set_weights(const LayerWeights& from) override {
    from_ = from;
    if (auto* own = plans_.own_if_made()) own->set_weights(from);
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    const Forward* plans = plans_.forward(samples);
    if (plans == nullptr) return plans_.own().forward(samples, x, y);
    CudnnPlan::Pointers pointers = {CudnnPlan::at(Role::kInput, x),
                                    CudnnPlan::at(Role::kWeights, from_.weights),
                                    CudnnPlan::at(Role::kOutput, y)};
    // A library's plan takes the bias in the plan's type, our add_bias in fp32.
    if (plans->fused && shape_.bias) pointers.insert(CudnnPlan::at(Role::kBias, from_.typed_bias));
    run(plans->plan, std::move(pointers));
    if (plans->fused || (!shape_.bias && !shape_.relu)) return;
    cuda::add_bias(device_, plan_.type, pixels_of(samples), shape_.channels,
                   shape_.bias ? from_.bias : nullptr, shape_.relu, y);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    const Backward* plans = plans_.backward(samples);
    if (plans == nullptr) {
      return plans_.own().backward(samples, x, y, dy, dx, weight_gradient, bias_gradient);
    }
    // First, because both products read the masked dy.
    bias_gradient_.mask_and_sum(pixels_of(samples), y, dy, bias_gradient);
    if (dx == nullptr) return add_weight_gradient(*plans, x, dy, weight_gradient);
    device_.run_beside([&] { add_weight_gradient(*plans, x, dy, weight_gradient); },
                       [&] {
                         CHECK(plans->input.has_value(), "the plan says nobody asks for dx");
                         run(*plans->input, {CudnnPlan::at(Role::kOutput, dy),
                                             CudnnPlan::at(Role::kWeights, from_.weights),
                                             CudnnPlan::at(Role::kInput, dx)});
                       });
  }

 private:
  void add_weight_gradient(const Backward& plans, ConstBuffer x, ConstBuffer dy,
                           float* weight_gradient) {
    auto* scratch = static_cast<std::byte*>(device_.scratch(weights_scratch(plans)));
    Buffer gradient = scratch + weights_offset(plans);
    // run() requests a part of this scratch, so its workspace is at the same address, before the
    // gradient.
    run(plans.weights, {CudnnPlan::at(Role::kOutput, dy), CudnnPlan::at(Role::kInput, x),
                        CudnnPlan::at(Role::kWeights, gradient)});
    cuda::add_slice(device_, plans.gradient, weights_count(), gradient, weight_gradient);
  }

  Planner planner(std::int64_t samples) const {
    return {libraries_, cudnn_, shape_, plan_, samples};
  }

  Result<std::unique_ptr<WeightedOp>> make_own() const {
    FETTLE_ASSIGN(auto own, own_conv(device_, shape_, plan_));
    own->set_weights(from_);
    return own;
  }

  std::int64_t pixels_of(std::int64_t samples) const {
    return samples * shape_.output().height * shape_.output().width;
  }
  std::int64_t weights_count() const {
    return shape_.channels * shape_.kernel * shape_.kernel * shape_.input.channels;
  }

  // Offset in the scratch of the weight gradient, behind the plan's workspace, 256-byte aligned.
  static std::int64_t weights_offset(const Backward& plans) {
    constexpr std::int64_t kAlignment = 256;
    return (plans.weights.workspace_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::int64_t weights_scratch(const Backward& plans) const {
    return weights_offset(plans) + weights_count() * size_of(plans.gradient);
  }
  // Bytes for the plans for the largest number of samples.
  std::int64_t scratch_bytes() {
    const Forward* forward = plans_.forward(plan_.max_samples);
    const Backward* backward = plans_.backward(plan_.max_samples);
    std::int64_t bytes = forward == nullptr ? 0 : forward->plan.workspace_bytes();
    if (backward == nullptr) return bytes;
    const std::int64_t of_input = backward->input ? backward->input->workspace_bytes() : 0;
    return std::max({bytes, of_input, weights_scratch(*backward)});
  }

  void run(const CudnnPlan& plan, CudnnPlan::Pointers pointers) {
    plan.run(device_, cudnn_, std::move(pointers), device_.scratch(plan.workspace_bytes()));
  }

  cuda::LibraryPlans& libraries_;
  cuda::Device& device_;
  const Cudnn& cudnn_;
  const ConvShape shape_;
  const PlanOptions plan_;
  cuda::BiasGradient bias_gradient_;
  LayerWeights from_;
  cuda::PassPlans<Forward, Backward, WeightedOp> plans_;
};

}  // namespace

Result<std::unique_ptr<WeightedOp>> cudnn_conv(cuda::LibraryPlans& libraries,
                                               const ConvShape& shape, const PlanOptions& plan) {
  FETTLE_ASSIGN(Cudnn * cudnn, libraries.device().library<Cudnn>());
  auto op = std::make_unique<CudnnConv>(libraries, *cudnn, shape, plan);
  FETTLE_TRY(op->prepare());
  return std::unique_ptr<WeightedOp>(std::move(op));
}

}  // namespace fettle::kernels
