#include "kernels/cuda/errors.h"

#include <cstdio>
#include <mutex>
#include <set>

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

void say_ours_does_it(const Error& reason) {
  static std::mutex mutex;
  static auto& said = *new std::set<std::string>();  // others may plan until the process ends
  constexpr std::size_t kMostNotes = 100;
  const std::scoped_lock lock(mutex);
  if (said.size() == kMostNotes || !said.insert(reason.message).second) return;
  std::fprintf(stderr, "note: %s; the kernel of ours does it\n", reason.message.c_str());
}

}  // namespace fettle::kernels::cuda
