// Who does the work of a matrix product, a convolution and attention on a GPU: the library, or the
// simple version of ours (docs/decisions/0017). With FETTLE_CUDA_SIMPLE=1 it is ours, for
// comparison. The emulator has its own (emulator/choice.cpp).
#include <cstdlib>
#include <string_view>

#include "kernels/attention/cuda.h"
#include "kernels/conv/cuda.h"
#include "kernels/cuda/errors.h"
#include "kernels/linear/cuda.h"

namespace fettle::kernels {
namespace {

bool wants_simple() {
  const char* value =
      std::getenv("FETTLE_CUDA_SIMPLE");  // NOLINT(concurrency-mt-unsafe): read only
  return value != nullptr && std::string_view(value) == "1";
}

// The library's unless it has nothing for this shape.
template <class Op, class Simple>
Result<std::unique_ptr<Op>> or_simple(Result<std::unique_ptr<Op>> made, Simple simple) {
  if (made.ok() || made.error().code != ErrorCode::kNotFound) return made;
  cuda::say_ours_does_it(made.error());
  return simple();
}

}  // namespace

Result<std::unique_ptr<LinearOp>> cuda_linear(cuda::Device& device, const LinearShape& shape,
                                              const PlanOptions& plan) {
  if (wants_simple()) return simple_linear(device, shape, plan);
  return or_simple(cublaslt_linear(device, shape, plan),
                   [&] { return simple_linear(device, shape, plan); });
}

Result<std::unique_ptr<WeightedOp>> cuda_conv(cuda::Device& device, const ConvShape& shape,
                                              const PlanOptions& plan) {
  if (wants_simple()) return simple_conv(device, shape, plan);
  return or_simple(cudnn_conv(device, shape, plan),
                   [&] { return simple_conv(device, shape, plan); });
}

Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::Device& device,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan) {
  if (wants_simple() || plan.type == DataType::kFloat32) {
    return simple_attention(device, shape, plan);
  }
  return or_simple(cudnn_attention(device, shape, plan),
                   [&] { return simple_attention(device, shape, plan); });
}

}  // namespace fettle::kernels
