// Entry points that libfettle_cuda.so exports to the program (plugin.h). Everything else is hidden.
#include "kernels/backends/cuda/plugin.h"

#include "kernels/backends/cuda/backend.h"
#include "kernels/cuda/libraries/nccl.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {
namespace {

Result<std::unique_ptr<CommunicatorMaker>> communicators() {
  FETTLE_TRY(find_gpu());
  return nccl_communicators();
}

}  // namespace
}  // namespace fettle::kernels::cuda

extern "C" {

[[gnu::visibility("default")]] const char* fettle_cuda_interface() {
  return FETTLE_PLUGIN_INTERFACE;
}

[[gnu::visibility("default")]] void fettle_cuda_backend(
    fettle::Result<std::unique_ptr<fettle::kernels::Backend>>* to) {
  *to = fettle::kernels::cuda_backend();
}

[[gnu::visibility("default")]] void fettle_cuda_communicator(
    fettle::Result<std::unique_ptr<fettle::kernels::CommunicatorMaker>>* to) {
  *to = fettle::kernels::cuda::communicators();
}

}  // extern "C"
