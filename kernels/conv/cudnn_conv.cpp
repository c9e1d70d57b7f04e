// Convolutions by cuDNN, NHWC, on tensor cores in bf16 and fp16.
//
// On an H100 a 3 x 3 convolution does 18 FLOP by in channels for each output number in bf16: with
// 64 channels and more it is bound by arithmetic, below by bytes. So bias and ReLU are fused into
// the forward pass where cuDNN has an engine for it; elsewhere one pass of ours adds them
// (add_bias.h). cuDNN has deterministic engines for weight gradients in the type of the activations
// only: they are summed in fp32, rounded once a call, and added to the fp32 gradient
// (torch.autocast rounds there, too). One pass of ours masks dy by the ReLU and adds up the bias
// gradient (linear/bias_gradient.h).
#include <algorithm>
#include <utility>

#include "kernels/conv/add_bias.h"
#include "kernels/conv/cuda.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/plan_cache.h"
#include "kernels/linear/add_slices.h"
#include "kernels/linear/bias_gradient.h"

namespace fettle::kernels {
namespace {

using cuda::ConvPass;
using cuda::Cudnn;
using cuda::CudnnPlan;
using cuda::Role;

// Of one number of samples.
struct Plans {
  CudnnPlan forward;
  CudnnPlan input;
  CudnnPlan weights;
  bool fused = false;  // forward has bias and ReLU
};

Result<std::unique_ptr<Plans>> make_plans(const Cudnn& cudnn, const ConvShape& shape,
                                          const PlanOptions& plan, std::int64_t samples) {
  auto plans = std::make_unique<Plans>();
  if (shape.bias || shape.relu) {
    auto fused = cuda::plan_conv(cudnn, shape, plan, samples, ConvPass::kForwardFused);
    plans->fused = fused.ok();
    if (fused.ok()) plans->forward = std::move(fused).value();
  }
  if (!plans->fused) {
    FETTLE_ASSIGN(plans->forward, cuda::plan_conv(cudnn, shape, plan, samples, ConvPass::kForward));
  }
  FETTLE_ASSIGN(plans->input, cuda::plan_conv(cudnn, shape, plan, samples, ConvPass::kInput));
  FETTLE_ASSIGN(plans->weights, cuda::plan_conv(cudnn, shape, plan, samples, ConvPass::kWeights));
  return plans;
}

class CudnnConv : public WeightedOp {
 public:
  CudnnConv(cuda::Device& device, const Cudnn& cudnn, const ConvShape& shape,
            const PlanOptions& plan, std::unique_ptr<WeightedOp> own)
      : device_(device),
        cudnn_(cudnn),
        shape_(shape),
        plan_(plan),
        bias_gradient_(device, plan.type, shape.channels, shape.bias, shape.relu),
        own_(std::move(own)) {}

  // Plans the largest number of samples.
  Status prepare() {
    FETTLE_TRY(bias_gradient_.reserve(pixels_of(plan_.max_samples)));
    FETTLE_ASSIGN(std::unique_ptr<Plans> plans,
                  make_plans(cudnn_, shape_, plan_, plan_.max_samples));
    FETTLE_TRY(device_.reserve_scratch(scratch_bytes(*plans)));
    plans_.put(plan_.max_samples, std::move(plans));
    return success();
  }

  void set_weights(const LayerWeights& from) override {
    own_->set_weights(from);
    from_ = from;
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    const Plans* plans = plans_for(samples);
    if (plans == nullptr) return own_->forward(samples, x, y);
    CudnnPlan::Pointers pointers = {CudnnPlan::at(Role::kInput, x),
                                    CudnnPlan::at(Role::kWeights, from_.weights),
                                    CudnnPlan::at(Role::kOutput, y)};
    if (plans->fused && shape_.bias) pointers.insert(CudnnPlan::at(Role::kBias, from_.typed_bias));
    run(plans->forward, std::move(pointers));
    if (plans->fused || (!shape_.bias && !shape_.relu)) return;
    cuda::add_bias(device_, plan_.type, pixels_of(samples), shape_.channels,
                   shape_.bias ? from_.bias : nullptr, shape_.relu, y);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    const Plans* plans = plans_for(samples);
    if (plans == nullptr) {
      return own_->backward(samples, x, y, dy, dx, weight_gradient, bias_gradient);
    }
    bias_gradient_.run(pixels_of(samples), y, dy, bias_gradient);
    Buffer gradient = scratch_of(*plans) + weights_offset(*plans);
    run(plans->weights, {CudnnPlan::at(Role::kOutput, dy), CudnnPlan::at(Role::kInput, x),
                         CudnnPlan::at(Role::kWeights, gradient)});
    cuda::add_slice(device_, plan_.type, weights_count(), gradient, weight_gradient);
    if (dx == nullptr) return;
    run(plans->input,
        {CudnnPlan::at(Role::kOutput, dy), CudnnPlan::at(Role::kWeights, from_.weights),
         CudnnPlan::at(Role::kInput, dx)});
  }

 private:
  // A size that only we have a way for is ours: nullptr.
  const Plans* plans_for(std::int64_t samples) {
    return plans_.find(samples, [&](std::int64_t count) {
      auto made = make_plans(cudnn_, shape_, plan_, count);
      if (!made.ok()) cuda::say_ours_does_it(made.error());
      return made.ok() ? std::move(made).value() : nullptr;
    });
  }

  std::int64_t pixels_of(std::int64_t samples) const {
    return samples * shape_.output().height * shape_.output().width;
  }
  std::int64_t weights_count() const {
    return shape_.channels * shape_.kernel * shape_.kernel * shape_.input.channels;
  }

  // The scratch: a plan's workspace, and behind it, 256-byte aligned, the weight gradient.
  static std::int64_t weights_offset(const Plans& plans) {
    constexpr std::int64_t kAlignment = 256;
    return (plans.weights.workspace_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::int64_t scratch_bytes(const Plans& plans) const {
    return std::max({plans.forward.workspace_bytes(), plans.input.workspace_bytes(),
                     weights_offset(plans) + weights_count() * size_of(plan_.type)});
  }
  std::byte* scratch_of(const Plans& plans) {
    return static_cast<std::byte*>(device_.scratch(scratch_bytes(plans)));
  }

  void run(const CudnnPlan& plan, CudnnPlan::Pointers pointers) {
    plan.run(device_, cudnn_, std::move(pointers), device_.scratch(plan.workspace_bytes()));
  }

  cuda::Device& device_;
  const Cudnn& cudnn_;
  const ConvShape shape_;
  const PlanOptions plan_;
  cuda::BiasGradient bias_gradient_;
  std::unique_ptr<WeightedOp> own_;
  cuda::PlanCache<Plans> plans_;
  LayerWeights from_;
};

}  // namespace

Result<std::unique_ptr<WeightedOp>> cudnn_conv(cuda::Device& device, const ConvShape& shape,
                                               const PlanOptions& plan) {
  FETTLE_ASSIGN(Cudnn * cudnn, device.library<Cudnn>());
  FETTLE_ASSIGN(auto own, own_conv(device, shape, plan));
  auto op = std::make_unique<CudnnConv>(device, *cudnn, shape, plan, std::move(own));
  FETTLE_TRY(op->prepare());
  return std::unique_ptr<WeightedOp>(std::move(op));
}

}  // namespace fettle::kernels
