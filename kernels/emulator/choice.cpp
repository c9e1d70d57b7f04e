// The emulator has no libraries: our own kernels do everything (backends/cuda/choice.cpp has the
// choice). It has no profilers either.
#include "kernels/backends/cuda/own.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/nvtx.h"

namespace fettle::kernels {

Result<std::unique_ptr<LinearOp>> cuda_linear(cuda::LibraryPlans& libraries,
                                              const LinearShape& shape, const PlanOptions& plan) {
  note_own(libraries, shape, plan);
  return own_linear(libraries.device(), shape, plan);
}

Result<std::unique_ptr<WeightedOp>> cuda_conv(cuda::LibraryPlans& libraries, const ConvShape& shape,
                                              const PlanOptions& plan) {
  note_own(libraries, shape, plan);
  return own_conv(libraries.device(), shape, plan);
}

Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::LibraryPlans& libraries,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan) {
  note_own(libraries, shape, plan);
  return own_attention(libraries.device(), shape, plan);
}

std::unique_ptr<Ranges> cuda::nvtx_ranges() { return nullptr; }

}  // namespace fettle::kernels
