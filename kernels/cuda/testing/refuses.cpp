// A libfettle_cuda.so on a machine without a GPU.
#include "kernels/backends/cuda/plugin.h"

extern "C" {
const char* fettle_cuda_interface() { return FETTLE_PLUGIN_INTERFACE; }
void fettle_cuda_backend(fettle::Result<std::unique_ptr<fettle::kernels::Backend>>* to) {
  *to = fettle::invalid("no GPU: this machine has no NVIDIA driver");
}
}
