// A libfettle_cuda.so that finds a GPU. Its backend is nullptr: the test is about crossing the
// border.
#include "kernels/backends/cuda/plugin.h"

extern "C" {
const char* fettle_cuda_interface() { return FETTLE_PLUGIN_INTERFACE; }
void fettle_cuda_backend(fettle::Result<std::unique_ptr<fettle::kernels::Backend>>* to) {
  *to = std::unique_ptr<fettle::kernels::Backend>();
}
}
