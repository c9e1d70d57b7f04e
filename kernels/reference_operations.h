// The reference of each operation: plain C++, one thread, a fixed order of summation. Each
// reference.cpp has its formulas at the top. Shapes have been checked (shapes.h). Gathering has a
// header of its own, since the trainer needs its parts.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace fettle::kernels {

std::unique_ptr<WeightedOp> reference_linear(const LinearShape& shape, const PlanOptions& plan);
std::unique_ptr<WeightedOp> reference_conv(const ConvShape& shape, const PlanOptions& plan);
std::unique_ptr<BatchNormOp> reference_batch_norm(const BatchNormShape& shape,
                                                  const PlanOptions& plan);
std::unique_ptr<RowNormOp> reference_row_norm(const RowNormShape& shape, const PlanOptions& plan);
std::unique_ptr<AttentionOp> reference_attention(const AttentionShape& shape,
                                                 const PlanOptions& plan);
std::unique_ptr<EmbeddingOp> reference_embedding(const EmbeddingShape& shape,
                                                 const PlanOptions& plan);
std::unique_ptr<PoolOp> reference_pool(const PoolShape& shape, const PlanOptions& plan);
std::unique_ptr<ReluOp> reference_relu(DataType type);
// `max_count`: maximum elements of a call.
std::unique_ptr<GeluOp> reference_gelu(GeluForm form, std::int64_t max_count, DataType type);
std::unique_ptr<DropoutOp> reference_dropout(float rate, std::int64_t elements_per_sample,
                                             DataType type);
std::unique_ptr<SoftmaxCrossEntropyOp> reference_softmax_cross_entropy(std::int64_t classes,
                                                                       DataType type);
std::unique_ptr<UpdateOp> reference_update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                           const UpdateSettings& settings);

}  // namespace fettle::kernels
