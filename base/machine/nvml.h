// The driver's management library (NVML), opened at run time: it comes with the driver, so neither
// building nor starting needs it. Declares the used part of nvml.h, whose layout is stable
// (NVIDIA's NVML API reference). For gpu.cpp and gpu_meter.cpp; usable from any thread.
#pragma once

#include <dlfcn.h>

#include <array>
#include <optional>
#include <string>

namespace fettle::machine::nvml {

using Device = void*;

struct MemoryInfo {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

struct PciInfo {
  char legacy_bus_id[16] = {};
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned device_id = 0;
  unsigned subsystem_id = 0;
  char bus_id[32] = {};
};

// Percent of the driver's last sampling period (1/6 s to 1 s).
struct Utilization {
  unsigned gpu = 0;  // of the time in which a kernel ran
  unsigned memory = 0;
};

inline constexpr unsigned kEnabled = 1;

// An open library. Each function is looked up when it is called: older drivers lack some, and the
// call then fails like any other.
class Library {
 public:
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Why it cannot be used; "" = it can.
  const std::string& missing() const { return missing_; }

  template <class... Arguments>
  bool call(const char* function, Arguments... arguments) const {
    return status(function, arguments...) == kSuccess;
  }

  // Returns the text that a function writes into a buffer, its last arguments.
  template <class... Arguments>
  std::string text(const char* function, Arguments... arguments) const {
    std::array<char, kTextBytes> buffer{};
    if (!call(function, arguments..., buffer.data(), kTextBytes)) return "";
    return buffer.data();
  }

 private:
  static constexpr int kSuccess = 0;
  // All names and versions are shorter (NVML_DEVICE_*_BUFFER_SIZE).
  static constexpr unsigned kTextBytes = 96;

  template <class... Arguments>
  int status(const char* function, Arguments... arguments) const {
    constexpr int kFunctionNotFound = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
    void* const symbol = ::dlsym(handle_, function);
    if (symbol == nullptr) return kFunctionNotFound;
    return reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
  }
  std::string explain(int code) const;

  void* const handle_;
  bool begun_ = false;
  std::string missing_;
};

// Whether the GPU is partitioned (Multi-Instance GPU); absent: it lacks the mode.
std::optional<bool> is_cut(const Library& library, Device device);

}  // namespace fettle::machine::nvml
