// Chooses between the library and our own kernels for matrix products, convolutions and attention
// on a GPU (docs/decisions/0017). FETTLE_CUDA_OWN=1 gives everything to our own kernels, for
// comparison. If a library has no plan, it falls back pass by pass (cuda/libraries/fall_back.h).
// The emulator makes its own choice (emulator/choice.cpp).
#include <cstdlib>
#include <string_view>

#include "kernels/backends/cuda/own.h"
#include "kernels/cuda/operations.h"

namespace fettle::kernels {
namespace {

bool wants_own() {
  const char* value = std::getenv("FETTLE_CUDA_OWN");  // NOLINT(concurrency-mt-unsafe): read only
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

Result<std::unique_ptr<LinearOp>> cuda_linear(cuda::LibraryPlans& libraries,
                                              const LinearShape& shape, const PlanOptions& plan) {
  if (!wants_own()) return cublaslt_linear(libraries, shape, plan);
  note_own(libraries, shape, plan);
  return own_linear(libraries.device(), shape, plan);
}

Result<std::unique_ptr<WeightedOp>> cuda_conv(cuda::LibraryPlans& libraries, const ConvShape& shape,
                                              const PlanOptions& plan) {
  if (!wants_own()) return cudnn_conv(libraries, shape, plan);
  note_own(libraries, shape, plan);
  return own_conv(libraries.device(), shape, plan);
}

Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::LibraryPlans& libraries,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan) {
  if (!wants_own() && cudnn_takes(shape, plan.type)) return cudnn_attention(libraries, shape, plan);
  note_own(libraries, shape, plan);
  return own_attention(libraries.device(), shape, plan);
}

}  // namespace fettle::kernels
