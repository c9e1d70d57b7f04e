// Shapes that backends accept: the same everywhere, with the same error messages.
// Pure functions; usable from any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

// Sizes are positive, the kernel fits the (padded) input, strides and padding are sensible. The
// trainer's options (api/trainer/trainer_fields.h) bound each size, so products fit 64 bits. The
// error names the value found and the value expected.
Status check_shape(const LinearShape& shape, const PlanOptions& plan);
Status check_shape(const ConvShape& shape, const PlanOptions& plan);
Status check_shape(const PoolShape& shape, const PlanOptions& plan);
Status check_shape(const BatchNormShape& shape, const PlanOptions& plan);
Status check_shape(const RowNormShape& shape, const PlanOptions& plan);
Status check_shape(const AttentionShape& shape, const PlanOptions& plan);
Status check_shape(const EmbeddingShape& shape, const PlanOptions& plan);
Status check_shape(const Samples& samples, const PlanOptions& plan);

// Describes an operation for plans and reports: "linear 768 to 3072, 32 samples, bf16".
std::string describe(const LinearShape& shape, const PlanOptions& plan, std::int64_t samples);
std::string describe(const ConvShape& shape, const PlanOptions& plan, std::int64_t samples);
std::string describe(const AttentionShape& shape, const PlanOptions& plan, std::int64_t samples);

// Aborts if a call ends a block with an operation that has a fused ReLU.
void check_end(const BatchNormShape& shape, const BlockEnd& end);

}  // namespace fettle::kernels
