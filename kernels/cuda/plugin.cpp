// What libfettle_cuda.so exports for the program (plugin.h). Everything else in it is hidden.
#include "kernels/cuda/plugin.h"

#include <cuda_runtime.h>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda/nccl.h"

namespace fettle::kernels::cuda {
namespace {

MachineFacts ask_runtime() {
  MachineFacts facts;
  const cudaError_t counted = cudaGetDeviceCount(&facts.devices);
  facts.error = counted;
  facts.error_text = cudaGetErrorString(counted);
  cudaDriverGetVersion(&facts.driver_version);
  cudaRuntimeGetVersion(&facts.runtime_version);
  cudaDeviceProp properties;
  if (counted == cudaSuccess && facts.devices > 0 &&
      cudaGetDeviceProperties(&properties, 0) == cudaSuccess) {
    facts.name = properties.name;
    facts.major = properties.major;
    facts.minor = properties.minor;
  }
  return facts;
}

template <class Made>
Result<std::unique_ptr<Made>> open(Result<std::unique_ptr<Made>> (*make)()) {
  FETTLE_TRY(check_machine(ask_runtime(), FETTLE_CUDA_ARCHITECTURES));
  return make();
}

}  // namespace
}  // namespace fettle::kernels::cuda

extern "C" {

[[gnu::visibility("default")]] const char* fettle_cuda_interface() {
  return FETTLE_PLUGIN_INTERFACE;
}

[[gnu::visibility("default")]] void fettle_cuda_backend(
    fettle::Result<std::unique_ptr<fettle::kernels::Backend>>* to) {
  *to = fettle::kernels::cuda::open(&fettle::kernels::cuda_backend);
}

[[gnu::visibility("default")]] void fettle_cuda_communicator(
    fettle::Result<std::unique_ptr<fettle::kernels::CommunicatorMaker>>* to) {
  *to = fettle::kernels::cuda::open(&fettle::kernels::cuda::nccl_communicators);
}

}  // extern "C"
