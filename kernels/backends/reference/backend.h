// ReferenceBackend: every operation's CPU reference. Plain C++ for any x86-64, one thread, a fixed
// order of summation: the same inputs give the same bits on every machine. bf16 is emulated
// (reference/floats.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/backends/cpu/backend.h"

namespace fettle::kernels {

class ReferenceBackend : public CpuBackend {
 public:
  std::string_view name() const override { return "reference"; }
  Result<std::unique_ptr<LinearOp>> make_linear(const LinearShape& shape,
                                                const PlanOptions& plan) override;
  Result<std::unique_ptr<WeightedOp>> make_conv(const ConvShape& shape,
                                                const PlanOptions& plan) override;
  Result<std::unique_ptr<BatchNormOp>> make_batch_norm(const BatchNormShape& shape,
                                                       const PlanOptions& plan) override;
  Result<std::unique_ptr<RowNormOp>> make_row_norm(const RowNormShape& shape,
                                                   const PlanOptions& plan) override;
  Result<std::unique_ptr<AttentionOp>> make_attention(const AttentionShape& shape,
                                                      const PlanOptions& plan) override;
  Result<std::unique_ptr<EmbeddingOp>> make_embedding(const EmbeddingShape& shape,
                                                      const PlanOptions& plan) override;
  Result<std::unique_ptr<PoolOp>> make_pool(const PoolShape& shape,
                                            const PlanOptions& plan) override;
  std::unique_ptr<ReluOp> relu(DataType type) override;
  std::unique_ptr<GeluOp> gelu(GeluForm form, std::int64_t max_count, DataType type) override;
  std::unique_ptr<DropoutOp> dropout(float rate, std::int64_t elements_per_sample,
                                     DataType type) override;
  std::unique_ptr<SoftmaxCrossEntropyOp> softmax_cross_entropy(std::int64_t classes,
                                                               DataType type) override;
  std::unique_ptr<UpdateOp> update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                   const UpdateSettings& settings) override;
  void sum_of_squares(std::int64_t count, const float* values, double* result) override;
  void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y,
           bool relu) override;
  void round(DataType type, std::int64_t count, const float* from, std::uint16_t* to) override;
  void widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to) override;
};

std::unique_ptr<Backend> reference_backend();

}  // namespace fettle::kernels
