// Finds and loads libfettle_cuda.so, so that one program runs with and without CUDA.
//
// Places: FETTLE_CUDA_LIBRARY alone if it is set; else the program's own folder, then ../lib from
// there. The library stays loaded until the process ends, because its objects may live that long.
// Any thread. Errors name the places searched and suggest a remedy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/libraries/communicator.h"

namespace fettle::kernels {

// `named`: FETTLE_CUDA_LIBRARY, or nullptr.
std::vector<std::string> cuda_library_places(const char* named, const std::string& program_folder);
// For this process.
std::vector<std::string> cuda_library_places();

class CudaLibrary {
 public:
  // Loads the first library that exists. Errors: none exists, it lacks a library, or it is from
  // another build.
  static Result<CudaLibrary> open(const std::vector<std::string>& places);

  // The function that the library exports under this name.
  Result<void*> find(const char* name) const;

 private:
  CudaLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  void* handle_;
};

// Creates the backend "cuda".
Result<std::unique_ptr<Backend>> load_cuda_backend(const std::vector<std::string>& places);
// All-reduces between this process's GPU and other processes' GPUs. Errors: as above, and no GPU.
Result<std::unique_ptr<CommunicatorMaker>> load_communicators(
    const std::vector<std::string>& places);

}  // namespace fettle::kernels
