// On the emulator there are no libraries: ours do it all (backends/cuda/choice.cpp has the choice).
// Nor are there tools that would watch it.
#include "kernels/backends/cuda/own.h"
#include "kernels/cuda/nvtx.h"
#include "kernels/cuda/operations.h"

namespace fettle::kernels {

Result<std::unique_ptr<LinearOp>> cuda_linear(cuda::Device& device, const LinearShape& shape,
                                              const PlanOptions& plan) {
  note_own(device, shape, plan);
  return own_linear(device, shape, plan);
}

Result<std::unique_ptr<WeightedOp>> cuda_conv(cuda::Device& device, const ConvShape& shape,
                                              const PlanOptions& plan) {
  note_own(device, shape, plan);
  return own_conv(device, shape, plan);
}

Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::Device& device,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan) {
  note_own(device, shape, plan);
  return own_attention(device, shape, plan);
}

std::unique_ptr<Ranges> cuda::nvtx_ranges() { return nullptr; }

}  // namespace fettle::kernels
