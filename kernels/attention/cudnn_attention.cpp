// Attention by cuDNN's flash attention (SDPA), in bf16 and fp16: what own_attention.cu does, on
// tensor cores.
//
// Bound by arithmetic from lengths of some hundred tokens on: 4 length^2 width FLOP a head forward,
// 10 backward, half of it by causality. Queries, keys and values are read, and their gradients
// written, where the linear layer has them side by side: no copies.
//
// The backward pass is the deterministic one. On Hopper cuDNN 9.19 does that by writing out the
// gradient of all scores: 2 samples heads length^2 bytes of workspace, which all layers share, and
// as many bytes to write and to read (docs/decisions/0017). FETTLE_CUDA_ATTENTION=fast takes the
// one that adds up dQ by atomics, as PyTorch does: without that workspace, and with other last bits
// each time.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "kernels/attention/cuda.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/plan_cache.h"

namespace fettle::kernels {
namespace {

using cuda::AttentionPass;
using cuda::Cudnn;
using cuda::CudnnPlan;
using cuda::Role;

// Of one number of samples.
struct Plans {
  CudnnPlan forward;
  CudnnPlan backward;
};

Result<std::unique_ptr<Plans>> make_plans(const Cudnn& cudnn, const AttentionShape& shape,
                                          DataType type, AttentionPass backward,
                                          std::int64_t samples) {
  auto plans = std::make_unique<Plans>();
  FETTLE_ASSIGN(plans->forward,
                cuda::plan_attention(cudnn, shape, type, samples, AttentionPass::kForward));
  FETTLE_ASSIGN(plans->backward, cuda::plan_attention(cudnn, shape, type, samples, backward));
  return plans;
}

AttentionPass wanted_backward() {
  const char* value =
      std::getenv("FETTLE_CUDA_ATTENTION");  // NOLINT(concurrency-mt-unsafe): read only
  const bool fast = value != nullptr && std::string_view(value) == "fast";
  return fast ? AttentionPass::kBackwardFast : AttentionPass::kBackward;
}

class CudnnAttention : public AttentionOp {
 public:
  CudnnAttention(cuda::Device& device, const Cudnn& cudnn, const AttentionShape& shape,
                 DataType type, std::unique_ptr<AttentionOp> own,
                 std::unique_ptr<Memory> statistics)
      : device_(device),
        cudnn_(cudnn),
        shape_(shape),
        type_(type),
        own_(std::move(own)),
        statistics_(std::move(statistics)) {}

  // Plans the largest number of samples.
  Status prepare(std::int64_t max_samples) {
    FETTLE_ASSIGN(std::unique_ptr<Plans> plans,
                  make_plans(cudnn_, shape_, type_, backward_, max_samples));
    FETTLE_TRY(device_.reserve_scratch(
        std::max(plans->forward.workspace_bytes(), plans->backward.workspace_bytes())));
    plans_.find(max_samples, [&](std::int64_t) { return std::move(plans); });
    return success();
  }

  void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) override {
    const Plans* plans = plans_for(samples);
    if (plans == nullptr) return own_->forward(samples, qkv, y);
    CudnnPlan::Pointers pointers = inputs(qkv);
    pointers.insert(CudnnPlan::at(Role::kOutput, y));
    run(plans->forward, std::move(pointers));
  }

  void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                Buffer dqkv) override {
    const Plans* plans = plans_for(samples);
    if (plans == nullptr) return own_->backward(samples, qkv, y, dy, dqkv);
    CudnnPlan::Pointers pointers = inputs(qkv);
    pointers.insert({CudnnPlan::at(Role::kOutput, y), CudnnPlan::at(Role::kOutputGradient, dy),
                     CudnnPlan::at(Role::kQueryGradient, part(dqkv, 0)),
                     CudnnPlan::at(Role::kKeyGradient, part(dqkv, 1)),
                     CudnnPlan::at(Role::kValueGradient, part(dqkv, 2))});
    run(plans->backward, std::move(pointers));
  }

 private:
  // A size that only we have a way for is ours: nullptr.
  const Plans* plans_for(std::int64_t samples) {
    return plans_.find(samples, [&](std::int64_t count) {
      auto made = make_plans(cudnn_, shape_, type_, backward_, count);
      if (!made.ok()) cuda::say_ours_does_it(made.error());
      return made.ok() ? std::move(made).value() : nullptr;
    });
  }

  // The queries (0), keys (1) or values (2) of the first token.
  const void* part(ConstBuffer qkv, std::int64_t which) const {
    return static_cast<const std::byte*>(qkv) + which * shape_.channels() * size_of(type_);
  }

  CudnnPlan::Pointers inputs(ConstBuffer qkv) const {
    return {CudnnPlan::at(Role::kQueries, part(qkv, 0)), CudnnPlan::at(Role::kKeys, part(qkv, 1)),
            CudnnPlan::at(Role::kValues, part(qkv, 2)),
            CudnnPlan::at(Role::kStatistics, statistics_->data())};
  }

  void run(const CudnnPlan& plan, CudnnPlan::Pointers pointers) {
    plan.run(device_, cudnn_, std::move(pointers), device_.scratch(plan.workspace_bytes()));
  }

  cuda::Device& device_;
  const Cudnn& cudnn_;
  const AttentionShape shape_;
  const DataType type_;
  const AttentionPass backward_ = wanted_backward();
  std::unique_ptr<AttentionOp> own_;
  std::unique_ptr<Memory> statistics_;  // of the last forward
  cuda::PlanCache<Plans> plans_;
};

}  // namespace

Result<std::unique_ptr<AttentionOp>> cudnn_attention(cuda::Device& device,
                                                     const AttentionShape& shape,
                                                     const PlanOptions& plan) {
  if (plan.type == DataType::kFloat32) {
    return not_found("cuDNN's attention is for bf16 and fp16");
  }
  FETTLE_ASSIGN(Cudnn * cudnn, device.library<Cudnn>());
  FETTLE_ASSIGN(auto own, own_attention(device, shape, plan));
  const std::int64_t rows = plan.max_samples * shape.heads * shape.length;
  FETTLE_ASSIGN(auto statistics, device.allocate(rows * static_cast<std::int64_t>(sizeof(float))));
  auto op = std::make_unique<CudnnAttention>(device, *cudnn, shape, plan.type, std::move(own),
                                             std::move(statistics));
  FETTLE_TRY(op->prepare(plan.max_samples));
  return std::unique_ptr<AttentionOp>(std::move(op));
}

}  // namespace fettle::kernels
