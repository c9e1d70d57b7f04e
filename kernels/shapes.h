// Which shapes a backend accepts: the same ones everywhere, in the same words.
// Pure functions; usable from any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

// Sizes are positive, the kernel fits the (padded) input, strides and padding are sensible. Each by
// itself is bounded by the trainer's options (api/trainer_fields.h), so products fit 64 bits.
// The error names what was found and what was expected.
Status check_shape(const LinearShape& shape, const PlanOptions& plan);
Status check_shape(const ConvShape& shape, const PlanOptions& plan);
Status check_shape(const PoolShape& shape, const PlanOptions& plan);
Status check_shape(const BatchNormShape& shape, const PlanOptions& plan);
Status check_shape(const RowNormShape& shape, const PlanOptions& plan);
Status check_shape(const AttentionShape& shape, const PlanOptions& plan);
Status check_shape(const EmbeddingShape& shape, const PlanOptions& plan);
Status check_shape(const Samples& samples, const PlanOptions& plan);

// An operation in words, for those who plan and report: "linear 768 to 3072, 32 samples, bf16".
std::string describe(const LinearShape& shape, const PlanOptions& plan, std::int64_t samples);
std::string describe(const ConvShape& shape, const PlanOptions& plan, std::int64_t samples);
std::string describe(const AttentionShape& shape, const PlanOptions& plan, std::int64_t samples);

// Aborts where a call ends a block with an operation that has a ReLU of its own.
void check_end(const BatchNormShape& shape, const BlockEnd& end);

}  // namespace fettle::kernels
