// Attention by cuDNN's flash attention (SDPA), in bf16 and fp16: own_attention.cu's work on tensor
// cores.
//
// Bound by arithmetic from lengths of some hundred tokens on: 4 length^2 width FLOP a head forward,
// 10 backward, half of it by causality. Queries, keys and values are read, and their gradients
// written, where the linear layer has them side by side, without copies.
//
// The backward pass sums dQ by atomics, as PyTorch does, so its last bits vary. If the plan asks
// for the same bits (training.deterministic) it uses cuDNN's deterministic pass: on Hopper cuDNN
// 9.19 writes out the gradient of all scores, 2 samples heads length^2 bytes of workspace, which
// all layers share, and as many bytes to write and to read (docs/decisions/0017).
//
// Each pass has one plan, for the largest number of samples, because cuDNN compiles each plan for
// seconds. A smaller batch runs it, too: samples do not meet in attention, and the buffers have
// room for the maximum (operations.h), so the results for absent samples are never read.
#include <optional>
#include <string>
#include <utility>

#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/libraries/fall_back.h"
#include "kernels/cuda/libraries/pass_plans.h"
#include "kernels/cuda/operations.h"
#include "kernels/shapes.h"

namespace fettle::kernels {
namespace {

using cuda::AttentionPass;
using cuda::Cudnn;
using cuda::CudnnPlan;
using cuda::Role;

class CudnnAttention : public AttentionOp {
 public:
  CudnnAttention(cuda::LibraryPlans& libraries, const Cudnn& cudnn, const AttentionShape& shape,
                 const PlanOptions& plan, std::unique_ptr<Memory> statistics)
      : libraries_(libraries),
        device_(libraries.device()),
        cudnn_(cudnn),
        shape_(shape),
        plan_(plan),
        statistics_(std::move(statistics)),
        plans_({.forward =
                    [this](std::int64_t) { return plan_pass("forward", AttentionPass::kForward); },
                .backward = [this](std::int64_t) { return plan_backward(); },
                .own = [this] { return make_own(); }}) {}

  // Plans the largest number of samples.
  Status prepare() {
    FETTLE_TRY(plans_.prepare(plan_.max_samples));
    for (const CudnnPlan* pass : {forward_plan(), backward_plan()}) {
      if (pass != nullptr) FETTLE_TRY(device_.reserve_scratch(pass->workspace_bytes()));
    }
    return success();
  }

  void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) override {
    const CudnnPlan* plan = forward_plan();
    if (plan == nullptr) return plans_.own().forward(samples, qkv, y);
    CudnnPlan::Pointers pointers = inputs(qkv);
    pointers.insert(CudnnPlan::at(Role::kOutput, y));
    run(*plan, std::move(pointers));
  }

  void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                Buffer dqkv) override {
    const CudnnPlan* plan = backward_plan();
    if (plan == nullptr) return plans_.own().backward(samples, qkv, y, dy, dqkv);
    CudnnPlan::Pointers pointers = inputs(qkv);
    pointers.insert({CudnnPlan::at(Role::kOutput, y), CudnnPlan::at(Role::kOutputGradient, dy),
                     CudnnPlan::at(Role::kQueryGradient, part(dqkv, 0)),
                     CudnnPlan::at(Role::kKeyGradient, part(dqkv, 1)),
                     CudnnPlan::at(Role::kValueGradient, part(dqkv, 2))});
    run(*plan, std::move(pointers));
  }

 private:
  const CudnnPlan* forward_plan() { return plans_.forward(plan_.max_samples); }
  const CudnnPlan* backward_plan() { return plans_.backward(plan_.max_samples); }

  Result<std::optional<CudnnPlan>> plan_backward() {
    if (!plan_.deterministic) {
      return plan_pass("backward", AttentionPass::kBackwardFast, "cuDNN, not deterministic");
    }
    return plan_pass("backward", AttentionPass::kBackward, "cuDNN",
                     "; without training.deterministic it may have one");
  }

  // Returns nullopt if our own kernels may do the pass. Errors: the library's others.
  Result<std::optional<CudnnPlan>> plan_pass(const char* name, AttentionPass pass,
                                             const char* by = "cuDNN", const char* way_out = "") {
    auto planned = cuda::plan_attention(cudnn_, shape_, plan_.type, plan_.max_samples, pass,
                                        {&libraries_, /*timed=*/true});
    if (!planned.ok() && planned.error().code == ErrorCode::kNotFound) {
      planned = not_found(planned.error().message + way_out);
    }
    return cuda::plan_or_own(libraries_,
                             {describe(shape_, plan_, plan_.max_samples), name, by, "", ""},
                             std::move(planned));
  }

  // The library's passes and ours store the same state from forward to backward: the log-sum-exp of
  // each query's scores, [samples, heads, length] in fp32. So one pass may be the library's and the
  // other ours.
  Result<std::unique_ptr<AttentionOp>> make_own() const {
    return own_attention(device_, shape_, plan_, statistics_->data());
  }

  // The queries (0), keys (1) or values (2) of the first token.
  const void* part(ConstBuffer qkv, std::int64_t which) const {
    return static_cast<const std::byte*>(qkv) + which * shape_.channels() * size_of(plan_.type);
  }

  CudnnPlan::Pointers inputs(ConstBuffer qkv) const {
    return {CudnnPlan::at(Role::kQueries, part(qkv, 0)), CudnnPlan::at(Role::kKeys, part(qkv, 1)),
            CudnnPlan::at(Role::kValues, part(qkv, 2)),
            CudnnPlan::at(Role::kStatistics, statistics_->data())};
  }

  void run(const CudnnPlan& plan, CudnnPlan::Pointers pointers) {
    plan.run(device_, cudnn_, std::move(pointers), device_.scratch(plan.workspace_bytes()));
  }

  cuda::LibraryPlans& libraries_;
  cuda::Device& device_;
  const Cudnn& cudnn_;
  const AttentionShape shape_;
  const PlanOptions plan_;
  const std::unique_ptr<Memory> statistics_;  // of the last forward
  cuda::PassPlans<CudnnPlan, CudnnPlan, AttentionOp> plans_;
};

}  // namespace

bool cudnn_takes(const AttentionShape& shape, DataType type) {
  constexpr std::int64_t kMultiple = 8, kWidest = 128;
  return type != DataType::kFloat32 && shape.width % kMultiple == 0 && shape.width <= kWidest;
}

Result<std::unique_ptr<AttentionOp>> cudnn_attention(cuda::LibraryPlans& libraries,
                                                     const AttentionShape& shape,
                                                     const PlanOptions& plan) {
  cuda::Device& device = libraries.device();
  FETTLE_ASSIGN(Cudnn * cudnn, device.library<Cudnn>());
  const std::int64_t rows = plan.max_samples * shape.heads * shape.length;
  FETTLE_ASSIGN(auto statistics, device.allocate(rows * static_cast<std::int64_t>(sizeof(float))));
  auto op = std::make_unique<CudnnAttention>(libraries, *cudnn, shape, plan, std::move(statistics));
  FETTLE_TRY(op->prepare());
  return std::unique_ptr<AttentionOp>(std::move(op));
}

}  // namespace fettle::kernels
