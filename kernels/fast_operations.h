// The operations of the fast CPU backend, in fp32 or bf16. Formulas are the reference's, and so are
// the bits where one file of loops serves both. The top of each fast.cpp says how it is fast.
// Shapes have been checked (shapes.h). The functions are pure; usable from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace fettle::kernels {

// Only where linear_by() chooses it (linear/choice.h): it uses AVX-512 instructions.
std::unique_ptr<WeightedOp> fast_linear(const LinearShape& shape, const PlanOptions& plan);
std::unique_ptr<BatchNormOp> fast_batch_norm(const BatchNormShape& shape, const PlanOptions& plan);
std::unique_ptr<AttentionOp> fast_attention(const AttentionShape& shape, const PlanOptions& plan);
std::unique_ptr<PoolOp> fast_pool(const PoolShape& shape, const PlanOptions& plan);
std::unique_ptr<ReluOp> fast_relu(DataType type);
// As ReluOp; `dx` may be dy.
void fast_relu_backward(DataType type, std::int64_t count, ConstBuffer y, ConstBuffer dy,
                        Buffer dx);
std::unique_ptr<GeluOp> fast_tanh_gelu(DataType type);
std::unique_ptr<UpdateOp> fast_update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                      const UpdateSettings& settings);
double fast_sum_of_squares(std::int64_t count, const float* values);

// For any type, with the meaning of Backend's functions.
void fast_add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y, bool relu);
void fast_fake_quantize(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                        Buffer y);
void fast_fake_quantize_backward(DataType type, std::int64_t count, const float* range,
                                 ConstBuffer x, ConstBuffer dy, Buffer dx);
void fast_track_range(DataType type, std::int64_t count, ConstBuffer x, float share, float* range);
void fast_fake_quantize_weights(DataType type, const WeightRows& rows, ConstBuffer x, Buffer y);
void fast_round(DataType type, std::int64_t count, const float* from, std::uint16_t* to);
void fast_widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to);

}  // namespace fettle::kernels
