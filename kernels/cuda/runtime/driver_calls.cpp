// The functions of CUDA's driver that cudnn-frontend 1.19 calls by name, for its own attention
// kernels. libfettle_cuda.so is not linked with libcuda, which only a machine with a driver has, so
// that a program without a GPU can load it and report the missing part. These functions get the
// driver's function from the runtime and call it, or return an error without a driver. They are not
// exported, so they hide no other library's libcuda. cudnn-frontend 1.32 calls none of them.
//
// Usable from any thread.
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace {

// Returns nullptr if this machine's driver has no function of that name.
void* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, &result);
  if (error == cudaSuccess && result == cudaDriverEntryPointSuccess) return found;
  cudaGetLastError();  // clears the error: the return value reports it
  return nullptr;
}

// The first argument gives the types; it is the function below of that name.
template <class... Parameters>
CUresult call(CUresult (*)(Parameters...), void* function, Parameters... arguments) {
  if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
  return reinterpret_cast<CUresult (*)(Parameters...)>(function)(arguments...);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  static void* const function = driver_function("cuGetErrorString");
  return call(cuGetErrorString, function, error, text);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                                   void** jit_values, unsigned jit_count, CUlibraryOption* options,
                                   void** values, unsigned count) {
  static void* const function = driver_function("cuLibraryLoadData");
  return call(cuLibraryLoadData, function, library, code, jit_options, jit_values, jit_count,
              options, values, count);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  static void* const function = driver_function("cuLibraryUnload");
  return call(cuLibraryUnload, function, library);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  static void* const function = driver_function("cuLibraryGetKernel");
  return call(cuLibraryGetKernel, function, kernel, library, name);
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                      CUdevice device) {
  static void* const function = driver_function("cuKernelSetAttribute");
  return call(cuKernelSetAttribute, function, attribute, value, kernel, device);
}

CUresult CUDAAPI cuLaunchKernel(CUfunction kernel, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, CUstream stream,
                                void** parameters, void** extra) {
  static void* const function = driver_function("cuLaunchKernel");
  return call(cuLaunchKernel, function, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z,
              shared_bytes, stream, parameters, extra);
}

CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
    const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  static void* const function = driver_function("cuTensorMapEncodeTiled");
  return call(cuTensorMapEncodeTiled, function, map, type, rank, address, sizes, strides, box,
              element_strides, interleave, swizzle, promotion, fill);
}

// NOLINTEND(readability-identifier-naming)
