// The optimisers on a GPU. All of it may be recorded in a CUDA graph: no call allocates, waits or
// reads a number on the host. Belongs to the device's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

namespace cuda {
class Device;
}

// Backend::update. Errors: no memory for the table of the parts (16 bytes for 4096 weights).
Result<std::unique_ptr<UpdateOp>> cuda_update(cuda::Device& device, UpdateRule rule,
                                              std::vector<UpdateBuffers> parts,
                                              const UpdateSettings& settings);

// What cuda_sum_of_squares needs of the device's scratch memory, to be reserved beforehand, as one
// counter.
inline constexpr std::int64_t kSquaresScratch = 1024 * std::int64_t{sizeof(double)};

// Backend::sum_of_squares. The same bits on every GPU.
void cuda_sum_of_squares(cuda::Device& device, std::int64_t count, const float* values,
                         double* result);

// The rest of a step, each as Backend says it.
void cuda_add_step_sums(cuda::Device& device, LossSums* of_loss, const StepInput* input,
                        StepSums* of_step);
void cuda_decide_step(cuda::Device& device, const StepSettings& settings, const StepSums* sums,
                      StepControl* control);
void cuda_end_statistics(cuda::Device& device, std::int64_t count, const StepControl* control,
                         const float* before, const float* sums, float* statistics);

}  // namespace fettle::kernels
