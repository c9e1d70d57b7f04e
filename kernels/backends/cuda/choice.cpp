// Who does the work of a matrix product, a convolution and attention on a GPU: the library, or the
// version of our own (docs/decisions/0017). With FETTLE_CUDA_OWN=1 it is ours, for
// comparison. The emulator has its own (emulator/choice.cpp).
#include <cstdlib>
#include <string_view>

#include "kernels/attention/cuda.h"
#include "kernels/conv/cuda.h"
#include "kernels/cuda/errors.h"
#include "kernels/linear/cuda.h"

namespace fettle::kernels {
namespace {

bool wants_own() {
  const char* value = std::getenv("FETTLE_CUDA_OWN");  // NOLINT(concurrency-mt-unsafe): read only
  return value != nullptr && std::string_view(value) == "1";
}

// The library's unless it has nothing for this shape.
template <class Op, class Own>
Result<std::unique_ptr<Op>> or_own(Result<std::unique_ptr<Op>> made, Own own) {
  if (made.ok() || made.error().code != ErrorCode::kNotFound) return made;
  cuda::say_ours_does_it(made.error());
  return own();
}

}  // namespace

Result<std::unique_ptr<LinearOp>> cuda_linear(cuda::Device& device, const LinearShape& shape,
                                              const PlanOptions& plan) {
  if (wants_own()) return own_linear(device, shape, plan);
  return or_own(cublaslt_linear(device, shape, plan),
                [&] { return own_linear(device, shape, plan); });
}

Result<std::unique_ptr<WeightedOp>> cuda_conv(cuda::Device& device, const ConvShape& shape,
                                              const PlanOptions& plan) {
  if (wants_own()) return own_conv(device, shape, plan);
  return or_own(cudnn_conv(device, shape, plan), [&] { return own_conv(device, shape, plan); });
}

Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::Device& device,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan) {
  if (wants_own() || plan.type == DataType::kFloat32) {
    return own_attention(device, shape, plan);
  }
  return or_own(cudnn_attention(device, shape, plan),
                [&] { return own_attention(device, shape, plan); });
}

}  // namespace fettle::kernels
