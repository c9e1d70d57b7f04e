// The end of a step on a GPU: the functions of step.h on numbers in device memory, and the running
// statistics. All of it is small: one thread handles a step's few numbers, and statistics are some
// thousand floats. The benefit is that the host is not involved.
#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/optimizer/step.h"

namespace fettle::kernels {
namespace cuda {
namespace {

constexpr unsigned kThreads = 256;

__global__ void add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) {
  add_and_clear(*of_loss, *input, *of_step);
}

__global__ void decide_step(StepSettings settings, const StepSums* sums, StepControl* control) {
  decide(settings, *sums, *control);
}

__device__ __forceinline__ std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

__global__ void end_statistics(std::int64_t count, const StepControl* control, const float* before,
                               const float* sums, float* statistics) {
  for (std::int64_t i = first_element(); i < count; i += stride()) {
    statistics[i] = statistic_after(*control, before[i], sums[i]);
  }
}

}  // namespace
}  // namespace cuda

void cuda_add_step_sums(cuda::Device& device, LossSums* of_loss, const StepInput* input,
                        StepSums* of_step) {
  cuda::launch(device.stream(), {.threads = 1}, cuda::add_step_sums, of_loss, input, of_step);
}

void cuda_decide_step(cuda::Device& device, const StepSettings& settings, const StepSums* sums,
                      StepControl* control) {
  cuda::launch(device.stream(), {.threads = 1}, cuda::decide_step, settings, sums, control);
}

void cuda_end_statistics(cuda::Device& device, std::int64_t count, const StepControl* control,
                         const float* before, const float* sums, float* statistics) {
  if (count == 0) return;
  cuda::launch(device.stream(),
               {.blocks = cuda::blocks_for(count, cuda::kThreads), .threads = cuda::kThreads},
               cuda::end_statistics, count, control, before, sums, statistics);
}

}  // namespace fettle::kernels
