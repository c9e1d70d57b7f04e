#include <string>

#include "kernels/backend.h"
#include "kernels/backends/cuda/loader.h"
#include "kernels/backends/reference/backend.h"
#ifdef FETTLE_ONEDNN
#include "kernels/backends/onednn/backend.h"
#endif

namespace fettle::kernels {

Result<std::unique_ptr<Backend>> make_backend(std::string_view name, int threads) {
  if (threads < 1) {
    return invalid("a backend with " + std::to_string(threads) + " threads, expected at least 1");
  }
  if (name == "reference") return std::unique_ptr<Backend>(std::make_unique<ReferenceBackend>());
  if (name == "onednn") {
#ifdef FETTLE_ONEDNN
    return onednn_backend(threads);
#else
    return invalid(
        "this build has no onednn backend: install libdnnl-dev and configure with "
        "-DFETTLE_ONEDNN=ON, or choose the backend reference");
#endif
  }
  if (name == "cuda") return load_cuda_backend(cuda_library_places());
  return invalid("there is no backend \"" + std::string(name) +
                 "\", expected reference, onednn or cuda");
}

}  // namespace fettle::kernels
