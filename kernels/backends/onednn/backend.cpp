#include "kernels/backends/onednn/backend.h"

#include <omp.h>

#include "kernels/backends/reference/backend.h"
#include "kernels/fast_operations.h"
#include "kernels/linear/choice.h"
#include "kernels/linear/unfused_gelu.h"
#include "kernels/onednn/weighted.h"
#include "kernels/reference_operations.h"
#include "kernels/relu/formulas.h"

namespace fettle::kernels {
namespace {

// Our own operations run in bf16 on any processor.
Status check_own_type(DataType type) {
  if (type != DataType::kFloat16) return success();
  return invalid(
      "the backend onednn has no fp16: use precision bf16 or fp32, or the backend reference, which "
      "emulates it");
}

Status check_type(DataType type) {
  FETTLE_TRY(check_own_type(type));
  if (type == DataType::kFloat32 || has_bfloat16(onednn_cpu())) return success();
  return invalid(
      "this processor has no bf16 arithmetic (AVX-512 BF16): use precision fp32, or the "
      "backend reference, which emulates it");
}

// Inherits the reference of every operation that it does not override.
class OnednnBackend : public ReferenceBackend {
 public:
  std::string_view name() const override { return "onednn"; }

  Result<std::unique_ptr<LinearOp>> make_linear(const LinearShape& shape,
                                                const PlanOptions& plan) override {
    FETTLE_TRY(check_type(plan.type));
    if (linear_by(onednn_cpu(), shape, plan) == LinearBy::kPackedProduct) {
      return unfused_gelu(*this, shape, plan, fast_linear(shape, plan));
    }
    FETTLE_ASSIGN(auto linear, onednn_linear(shape, plan));
    return unfused_gelu(*this, shape, plan, std::move(linear));
  }
  Result<std::unique_ptr<WeightedOp>> make_conv(const ConvShape& shape,
                                                const PlanOptions& plan) override {
    FETTLE_TRY(check_type(plan.type));
    return onednn_conv(shape, plan);
  }
  Result<std::unique_ptr<BatchNormOp>> make_batch_norm(const BatchNormShape& shape,
                                                       const PlanOptions& plan) override {
    FETTLE_TRY(check_own_type(plan.type));
    return fast_batch_norm(shape, plan);
  }
  Result<std::unique_ptr<AttentionOp>> make_attention(const AttentionShape& shape,
                                                      const PlanOptions& plan) override {
    FETTLE_TRY(check_own_type(plan.type));
    return fast_attention(shape, plan);
  }
  Result<std::unique_ptr<PoolOp>> make_pool(const PoolShape& shape,
                                            const PlanOptions& plan) override {
    FETTLE_TRY(check_own_type(plan.type));
    return fast_pool(shape, plan);
  }
  std::unique_ptr<ReluOp> relu(DataType type) override {
    return type == DataType::kFloat16 ? reference_relu(type) : fast_relu(type);
  }
  std::unique_ptr<GeluOp> gelu(GeluForm form, std::int64_t max_count, DataType type) override {
    // The exact form has no fast version.
    const bool fast = form == GeluForm::kTanh && type != DataType::kFloat16;
    return fast ? fast_tanh_gelu(type) : reference_gelu(form, max_count, type);
  }

  std::unique_ptr<UpdateOp> update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                   const UpdateSettings& settings) override {
    return fast_update(rule, std::move(parts), settings);
  }
  void sum_of_squares(std::int64_t count, const float* values, double* result) override {
    *result = fast_sum_of_squares(count, values);
  }
  void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y,
           bool relu) override {
    fast_add(type, count, a, b, y, relu);
  }
  void fake_quantize(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                     Buffer y) override {
    fast_fake_quantize(type, count, range, x, y);
  }
  void fake_quantize_backward(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                              ConstBuffer dy, Buffer dx) override {
    fast_fake_quantize_backward(type, count, range, x, dy, dx);
  }
  void track_range(DataType type, std::int64_t count, ConstBuffer x, float share,
                   float* range) override {
    fast_track_range(type, count, x, share, range);
  }
  void fake_quantize_weights(DataType type, const WeightRows& rows, ConstBuffer x,
                             Buffer y) override {
    fast_fake_quantize_weights(type, rows, x, y);
  }
  void round(DataType type, std::int64_t count, const float* from, std::uint16_t* to) override {
    fast_round(type, count, from, to);
  }
  void widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to) override {
    fast_widen(type, count, from, to);
  }
};

}  // namespace

Result<std::unique_ptr<Backend>> onednn_backend(int threads) {
  omp_set_num_threads(threads);
  return std::unique_ptr<Backend>(std::make_unique<OnednnBackend>());
}

}  // namespace fettle::kernels
