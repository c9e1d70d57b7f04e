// The interface between the program and libfettle_cuda.so.
//
// The library is a part of the program that is loaded where CUDA exists (loader.h): C++ objects
// pass between the two, so both must be compiled from the same headers. The build hashes these
// headers (kernels/CMakeLists.txt); a function that never changes returns the library's hash, and a
// library from another build is refused before any other code of it runs.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

inline constexpr const char* kCudaLibrary = "libfettle_cuda.so";

// Names of the exported symbols; all others are hidden.
inline constexpr const char* kInterfaceEntry = "fettle_cuda_interface";
inline constexpr const char* kBackendEntry = "fettle_cuda_backend";

using InterfaceEntry = const char*();
// Stores a backend on this process's first GPU, or the reason why no GPU is usable, in words.
using BackendEntry = void(Result<std::unique_ptr<Backend>>* to);

}  // namespace fettle::kernels
