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
// one that sums dQ by atomics, as PyTorch does: without that workspace, and with other last bits
// each time.
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/attention/cuda.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/fall_back.h"
#include "kernels/cuda/plan_cache.h"
#include "kernels/shapes.h"

namespace fettle::kernels {
namespace {

using cuda::AttentionPass;
using cuda::Cudnn;
using cuda::CudnnPlan;
using cuda::Role;

// Plans for one number of samples. Our own kernels do a pass that is missing here.
struct Plans {
  std::optional<CudnnPlan> forward;
  std::optional<CudnnPlan> backward;
};

// Whether the backward pass may sum in any order.
bool wants_fast() {
  const char* value =
      std::getenv("FETTLE_CUDA_ATTENTION");  // NOLINT(concurrency-mt-unsafe): read only
  return value != nullptr && std::string_view(value) == "fast";
}

class CudnnAttention : public AttentionOp {
 public:
  CudnnAttention(cuda::Device& device, const Cudnn& cudnn, const AttentionShape& shape,
                 const PlanOptions& plan, std::unique_ptr<Memory> statistics)
      : device_(device),
        cudnn_(cudnn),
        shape_(shape),
        plan_(plan),
        statistics_(std::move(statistics)) {}

  // Plans the largest number of samples.
  Status prepare() {
    FETTLE_ASSIGN(std::unique_ptr<Plans> plans, make_plans(plan_.max_samples));
    const bool complete = plans->forward && plans->backward;
    for (const auto* pass : {&plans->forward, &plans->backward}) {
      if (*pass) FETTLE_TRY(device_.reserve_scratch((*pass)->workspace_bytes()));
    }
    plans_.put(plan_.max_samples, std::move(plans));
    return complete ? success() : make_own();
  }

  void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) override {
    const auto& plan = plans_for(samples).forward;
    if (!plan) return own().forward(samples, qkv, y);
    CudnnPlan::Pointers pointers = inputs(qkv);
    pointers.insert(CudnnPlan::at(Role::kOutput, y));
    run(*plan, std::move(pointers));
  }

  void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                Buffer dqkv) override {
    const auto& plan = plans_for(samples).backward;
    if (!plan) return own().backward(samples, qkv, y, dy, dqkv);
    CudnnPlan::Pointers pointers = inputs(qkv);
    pointers.insert({CudnnPlan::at(Role::kOutput, y), CudnnPlan::at(Role::kOutputGradient, dy),
                     CudnnPlan::at(Role::kQueryGradient, part(dqkv, 0)),
                     CudnnPlan::at(Role::kKeyGradient, part(dqkv, 1)),
                     CudnnPlan::at(Role::kValueGradient, part(dqkv, 2))});
    run(*plan, std::move(pointers));
  }

 private:
  // Errors: the library's, but for kNotFound where our own kernels may do the pass.
  Result<std::unique_ptr<Plans>> make_plans(std::int64_t samples) {
    const std::string what = describe(shape_, plan_, samples);
    auto plans = std::make_unique<Plans>();
    FETTLE_ASSIGN(plans->forward, cuda::plan_or_own(device_, {what, "forward", "cuDNN", "", ""},
                                                    plan(samples, AttentionPass::kForward)));
    const char* by = wants_fast() ? "cuDNN, not deterministic" : "cuDNN";
    FETTLE_ASSIGN(plans->backward,
                  cuda::plan_or_own(device_, {what, "backward", by, "", ""},
                                    plan(samples, wants_fast() ? AttentionPass::kBackwardFast
                                                               : AttentionPass::kBackward)));
    return plans;
  }

  Result<CudnnPlan> plan(std::int64_t samples, AttentionPass pass) {
    return cuda::plan_attention(cudnn_, shape_, plan_.type, samples, pass);
  }

  const Plans& plans_for(std::int64_t samples) {
    return *plans_.find(samples, [&](std::int64_t count) {
      auto made = make_plans(count);
      CHECK(made.ok(), made.error().message);
      return std::move(made).value();
    });
  }

  // The two meet in what a forward leaves for its backward: the log-sum-exp of each query's scores,
  // [samples, heads, length] in fp32. So one pass may be the library's and the other ours.
  Status make_own() {
    FETTLE_ASSIGN(own_, own_attention(device_, shape_, plan_, statistics_->data()));
    return success();
  }
  AttentionOp& own() {
    if (own_ == nullptr) {
      const Status made = make_own();
      CHECK(made.ok(), made.error().message);
    }
    return *own_;
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

  cuda::Device& device_;
  const Cudnn& cudnn_;
  const AttentionShape shape_;
  const PlanOptions plan_;
  const std::unique_ptr<Memory> statistics_;  // of the last forward
  std::unique_ptr<AttentionOp> own_;          // nullptr as long as nothing needs it
  cuda::PlanCache<Plans> plans_;
};

}  // namespace

bool cudnn_takes(const AttentionShape& shape, DataType type) {
  constexpr std::int64_t kMultiple = 8, kWidest = 128;
  return type != DataType::kFloat32 && shape.width % kMultiple == 0 && shape.width <= kWidest;
}

Result<std::unique_ptr<AttentionOp>> cudnn_attention(cuda::Device& device,
                                                     const AttentionShape& shape,
                                                     const PlanOptions& plan) {
  FETTLE_ASSIGN(Cudnn * cudnn, device.library<Cudnn>());
  const std::int64_t rows = plan.max_samples * shape.heads * shape.length;
  FETTLE_ASSIGN(auto statistics, device.allocate(rows * static_cast<std::int64_t>(sizeof(float))));
  auto op = std::make_unique<CudnnAttention>(device, *cudnn, shape, plan, std::move(statistics));
  FETTLE_TRY(op->prepare());
  return std::unique_ptr<AttentionOp>(std::move(op));
}

}  // namespace fettle::kernels
