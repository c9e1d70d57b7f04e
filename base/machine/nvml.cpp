#include "base/machine/nvml.h"

namespace fettle::machine::nvml {

Library::Library(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_LAZY)) {
  if (handle_ == nullptr) {
    missing_ = std::string("there is no NVIDIA driver (") + ::dlerror() + ")";
    return;
  }
  const int code = status("nvmlInit_v2");
  begun_ = code == kSuccess;
  if (!begun_) missing_ = "the NVIDIA driver does not answer: " + explain(code);
}

Library::~Library() {
  if (begun_) (void)status("nvmlShutdown");
  if (handle_ != nullptr) ::dlclose(handle_);
}

std::string Library::explain(int code) const {
  void* const symbol = ::dlsym(handle_, "nvmlErrorString");
  if (symbol == nullptr) return "error " + std::to_string(code);
  return reinterpret_cast<const char* (*)(int)>(symbol)(code);
}

std::optional<bool> is_cut(const Library& library, Device device) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!library.call("nvmlDeviceGetMigMode", device, &current, &pending)) return std::nullopt;
  return current == kEnabled;
}

}  // namespace fettle::machine::nvml
