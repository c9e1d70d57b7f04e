#include "kernels/backends/cuda/loader.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "kernels/backends/cuda/plugin.h"

namespace fettle::kernels {
namespace {

// Packages with the libraries that libfettle_cuda.so is linked with.
struct Origin {
  std::string_view library;
  std::string_view package;
};
constexpr std::array<Origin, 4> kOrigins{{
    {"libcublasLt.so", "nvidia-cublas"},
    {"libcudnn.so", "nvidia-cudnn-cu13"},
    {"libnccl.so", "nvidia-nccl-cu13"},
    {"libnvrtc.so", "nvidia-cuda-nvrtc"},
}};

std::string package_of(std::string_view library) {
  for (const auto& [name, package] : kOrigins) {
    if (library.starts_with(name)) return " (the PyPI package " + std::string(package) + " has it)";
  }
  return "";
}

// `reason`: the dynamic linker's message, "libcudnn.so.9: cannot open shared object file: ...".
Error explain(const std::string& path, const std::string& reason) {
  const std::size_t colon = reason.find(": cannot open shared object file");
  const std::string missing = reason.substr(0, colon);
  // Anything but another library that is missing: in the words of the linker.
  if (colon == std::string::npos || missing == path) {
    return io_error("the CUDA backend could not be loaded: " + reason);
  }
  return io_error("the CUDA backend " + path + " needs " + missing +
                  ", which is not on this machine" + package_of(missing) +
                  ". Install it and name its folder in LD_LIBRARY_PATH, or choose another backend");
}

Error not_built(const std::vector<std::string>& places) {
  std::string looked;
  for (const std::string& place : places) looked += (looked.empty() ? "" : ", ") + place;
  return invalid("there is no CUDA backend here (looked for " + looked +
                 "). `make build CUDA=1` builds it, the image of the target trainer-cuda has it; "
                 "FETTLE_CUDA_LIBRARY names one that lies elsewhere");
}

// Calls the library's function of this name and returns the object that it makes.
template <class Made>
Result<std::unique_ptr<Made>> load(const std::vector<std::string>& places, const char* name) {
  FETTLE_ASSIGN(const CudaLibrary library, CudaLibrary::open(places));
  FETTLE_ASSIGN(void* const entry, library.find(name));
  Result<std::unique_ptr<Made>> made = io_error("the CUDA backend made nothing and said nothing");
  reinterpret_cast<void (*)(Result<std::unique_ptr<Made>>*)>(entry)(&made);
  return made;
}

std::string program_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

}  // namespace

std::vector<std::string> cuda_library_places(const char* named, const std::string& program_folder) {
  if (named != nullptr && *named != '\0') return {named};
  return {program_folder + "/" + kCudaLibrary, program_folder + "/../lib/" + kCudaLibrary};
}

std::vector<std::string> cuda_library_places() {
  return cuda_library_places(std::getenv("FETTLE_CUDA_LIBRARY"), program_folder());
}

Result<CudaLibrary> CudaLibrary::open(const std::vector<std::string>& places) {
  std::error_code ignored;
  // The first library that exists decides: a broken one is an error, no reason to look further.
  for (const std::string& path : places) {
    if (!std::filesystem::exists(path, ignored)) continue;
    // RTLD_NOW: a function missing from another library is an error here, not in the middle of a
    // step.
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return explain(path, ::dlerror());
    CudaLibrary library(path, handle);
    FETTLE_ASSIGN(void* const entry, library.find(kInterfaceEntry));
    const std::string_view interface = reinterpret_cast<InterfaceEntry*>(entry)();
    if (interface == FETTLE_PLUGIN_INTERFACE) return library;
    return invalid("the CUDA backend " + path + " is of another build than this program (" +
                   std::string(interface) + ", expected " + FETTLE_PLUGIN_INTERFACE +
                   "); build both from the same sources with `make build CUDA=1`");
  }
  return not_built(places);
}

Result<void*> CudaLibrary::find(const char* name) const {
  void* const found = ::dlsym(handle_, name);
  if (found != nullptr) return found;
  return invalid(path_ + " is not a CUDA backend of Fettle: it does not export " + name);
}

Result<std::unique_ptr<Backend>> load_cuda_backend(const std::vector<std::string>& places) {
  return load<Backend>(places, kBackendEntry);
}

Result<std::unique_ptr<CommunicatorMaker>> load_communicators(
    const std::vector<std::string>& places) {
  return load<CommunicatorMaker>(places, kCommunicatorEntry);
}

}  // namespace fettle::kernels
