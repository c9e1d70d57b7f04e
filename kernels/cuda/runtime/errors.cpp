#include "kernels/cuda/runtime/errors.h"

namespace fettle::kernels::cuda {

std::string words_of(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + std::to_string(static_cast<int>(error)) +
         "): " + cudaGetErrorString(error);
}

Status status_of(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return success();
  return io_error(std::string(what) + ": " + words_of(error));
}

void must_succeed(cudaError_t error, SourcePlace where) {
  if (error == cudaSuccess) return;
  check_failed(where.file_name(), static_cast<int>(where.line()), where.function_name(),
               words_of(error));
}

}  // namespace fettle::kernels::cuda
