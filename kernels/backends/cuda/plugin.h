// What a program and libfettle_cuda.so agree on.
//
// The library is a part of the program that is loaded where CUDA is there (loader.h): C++ objects
// pass between the two, so both must be compiled from the same headers. The build hashes those
// headers (kernels/CMakeLists.txt); the library says its hash by a function that cannot change, and
// a library of another build is refused before anything of it runs.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

inline constexpr const char* kCudaLibrary = "libfettle_cuda.so";

// Names of symbols that the library exports; all others are hidden.
inline constexpr const char* kInterfaceEntry = "fettle_cuda_interface";
inline constexpr const char* kBackendEntry = "fettle_cuda_backend";

using InterfaceEntry = const char*();
// Fills in a backend on this process's first GPU, or why there is none, in words.
using BackendEntry = void(Result<std::unique_ptr<Backend>>* to);

}  // namespace fettle::kernels
