// The operations on a GPU, each in the folder of its name. Formulas are the reference's. Shapes
// have been checked (shapes.h). `device` and `libraries` outlive the operations, and all of them
// belong to the device's thread. Calls may be recorded in a CUDA graph. Errors, unless stated
// otherwise: not enough memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels {

namespace cuda {
class LibraryPlans;
}

// ---- By a library or by our own kernels (docs/decisions/0017) ----------------------------------

// The library's, or ours if the build lacks the library, FETTLE_CUDA_OWN asks for it, or the
// library has no plan for the shape.
Result<std::unique_ptr<LinearOp>> cuda_linear(cuda::LibraryPlans& libraries,
                                              const LinearShape& shape, const PlanOptions& plan);
Result<std::unique_ptr<WeightedOp>> cuda_conv(cuda::LibraryPlans& libraries, const ConvShape& shape,
                                              const PlanOptions& plan);
// The library's only for heads accepted by cudnn_takes().
Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::LibraryPlans& libraries,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan);

// Ours: tiles in shared memory, every type, fp32 sums (linear/matrix_product.cuh). GELU beside a
// linear layer is fused, in both forms, and reads numbers rounded to the type, so the results equal
// a separate GELU's. A convolution is an implicit matrix product.
Result<std::unique_ptr<LinearOp>> own_linear(cuda::Device& device, const LinearShape& shape,
                                             const PlanOptions& plan);
Result<std::unique_ptr<WeightedOp>> own_conv(cuda::Device& device, const ConvShape& shape,
                                             const PlanOptions& plan);
// Ours: every type, fp32 sums. `log_sums` receives the log-sum-exp of each query's scores from
// forward, for backward, fp32, [max_samples, heads, length]; nullptr: in its own memory. Errors: a
// head wider than 256.
Result<std::unique_ptr<AttentionOp>> own_attention(cuda::Device& device,
                                                   const AttentionShape& shape,
                                                   const PlanOptions& plan,
                                                   Buffer log_sums = nullptr);

// cuBLASLt and cuDNN, on tensor cores; not in an emulated build. Errors: the library's message,
// with the shape; kNotFound if it has no plan for it. GELU is a separate kernel if cuBLASLt cannot
// or should not fuse it (linear/cublaslt_linear.cpp). Convolutions are NHWC.
Result<std::unique_ptr<LinearOp>> cublaslt_linear(cuda::LibraryPlans& libraries,
                                                  const LinearShape& shape,
                                                  const PlanOptions& plan);
Result<std::unique_ptr<WeightedOp>> cudnn_conv(cuda::LibraryPlans& libraries,
                                               const ConvShape& shape, const PlanOptions& plan);
Result<std::unique_ptr<AttentionOp>> cudnn_attention(cuda::LibraryPlans& libraries,
                                                     const AttentionShape& shape,
                                                     const PlanOptions& plan);
// Whether such heads go to cuDNN at all: in bf16 and fp16, with widths of multiples of 8 up to 128.
// cuDNN has forward for wider heads, but backward for some lengths only.
bool cudnn_takes(const AttentionShape& shape, DataType type);

// ---- Ours --------------------------------------------------------------------------------------

Result<std::unique_ptr<BatchNormOp>> cuda_batch_norm(cuda::Device& device,
                                                     const BatchNormShape& shape,
                                                     const PlanOptions& plan);
Result<std::unique_ptr<RowNormOp>> cuda_row_norm(cuda::Device& device, const RowNormShape& shape,
                                                 const PlanOptions& plan);
// Further error: more tokens than 32 bits can count.
Result<std::unique_ptr<EmbeddingOp>> cuda_embedding(cuda::Device& device,
                                                    const EmbeddingShape& shape,
                                                    const PlanOptions& plan);
Result<std::unique_ptr<PoolOp>> cuda_pool(cuda::Device& device, const PoolShape& shape,
                                          const PlanOptions& plan);
Result<std::unique_ptr<GatherOp>> cuda_gather(cuda::Device& device, const Samples& samples,
                                              const ImageLook& look, const PlanOptions& plan);
std::unique_ptr<ReluOp> cuda_relu(cuda::Device& device, DataType type);
std::unique_ptr<GeluOp> cuda_gelu(cuda::Device& device, GeluForm form, DataType type);
std::unique_ptr<DropoutOp> cuda_dropout(cuda::Device& device, float rate,
                                        std::int64_t elements_per_sample, DataType type);
std::unique_ptr<SoftmaxCrossEntropyOp> cuda_softmax_cross_entropy(cuda::Device& device,
                                                                  std::int64_t classes,
                                                                  DataType type);

// ---- Arrays, and the end of a step: each as Backend declares it ---------------------------------

// The same bits as on a CPU.
void cuda_add(cuda::Device& device, DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b,
              Buffer y, bool relu);
void cuda_add_scaled(cuda::Device& device, std::int64_t count, float factor, const float* x,
                     float* y);
void cuda_fake_quantize(cuda::Device& device, DataType type, std::int64_t count, const float* range,
                        ConstBuffer x, Buffer y);
void cuda_fake_quantize_backward(cuda::Device& device, DataType type, std::int64_t count,
                                 const float* range, ConstBuffer x, ConstBuffer dy, Buffer dx);
// Uses the scratch and the counter of cuda_sum_of_squares.
void cuda_track_range(cuda::Device& device, DataType type, std::int64_t count, ConstBuffer x,
                      float share, float* range);
void cuda_fake_quantize_weights(cuda::Device& device, DataType type, const WeightRows& rows,
                                ConstBuffer x, Buffer y);
// Uses the GPU's own instructions, which map every NaN to the same NaN. `type`: bf16 or fp16.
void cuda_round(cuda::Device& device, DataType type, std::int64_t count, const float* from,
                std::uint16_t* to);
void cuda_widen(cuda::Device& device, DataType type, std::int64_t count, const std::uint16_t* from,
                float* to);

// Needs 16 bytes for 4096 weights, for the table of parts.
Result<std::unique_ptr<UpdateOp>> cuda_update(cuda::Device& device, UpdateRule rule,
                                              std::vector<UpdateBuffers> parts,
                                              const UpdateSettings& settings);
// Bytes of the device's scratch that cuda_sum_of_squares needs. Reserve them, and one counter,
// first.
inline constexpr std::int64_t kSquaresScratch = 1024 * std::int64_t{sizeof(double)};
// The same bits on every GPU.
void cuda_sum_of_squares(cuda::Device& device, std::int64_t count, const float* values,
                         double* result);
void cuda_add_step_sums(cuda::Device& device, LossSums* of_loss, const StepInput* input,
                        StepSums* of_step);
void cuda_decide_step(cuda::Device& device, const StepSettings& settings, const StepSums* sums,
                      StepControl* control);
void cuda_end_statistics(cuda::Device& device, std::int64_t count, const StepControl* control,
                         const float* before, const float* sums, float* statistics);

}  // namespace fettle::kernels
