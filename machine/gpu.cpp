#include "machine/gpu.h"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <string_view>

namespace fettle::machine {
namespace {

// ---- What is used of nvml.h (NVIDIA's NVML API reference), whose layout is stable
// -----------------

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

constexpr int kNvmlSuccess = 0;
constexpr unsigned kTextBytes =
    96;  // every name and version is shorter (NVML_DEVICE_*_BUFFER_SIZE)
constexpr unsigned kMaxNvlinks = 18;
constexpr unsigned kEnabled = 1;

// An open library. Each function is looked up when it is called: older drivers lack some, and then
// the call fails like any other.
class Nvml {
 public:
  explicit Nvml(const std::string& library) : handle_(::dlopen(library.c_str(), RTLD_LAZY)) {
    if (handle_ == nullptr) {
      missing_ = std::string("there is no NVIDIA driver (") + ::dlerror() + ")";
      return;
    }
    const int code = status("nvmlInit_v2");
    begun_ = code == kNvmlSuccess;
    if (!begun_) missing_ = "the NVIDIA driver does not answer: " + explain(code);
  }
  ~Nvml() {
    if (begun_) (void)status("nvmlShutdown");
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& missing() const { return missing_; }

  template <class... Arguments>
  bool call(const char* function, Arguments... arguments) const {
    return status(function, arguments...) == kNvmlSuccess;
  }

  // What a function writes into a buffer, after what else it takes.
  template <class... Arguments>
  std::string text(const char* function, Arguments... arguments) const {
    std::array<char, kTextBytes> buffer{};
    if (!call(function, arguments..., buffer.data(), kTextBytes)) return "";
    return buffer.data();
  }

 private:
  template <class... Arguments>
  int status(const char* function, Arguments... arguments) const {
    constexpr int kFunctionNotFound = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
    void* const symbol = ::dlsym(handle_, function);
    if (symbol == nullptr) return kFunctionNotFound;
    return reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
  }

  std::string explain(int code) const {
    void* const symbol = ::dlsym(handle_, "nvmlErrorString");
    if (symbol == nullptr) return "error " + std::to_string(code);
    return reinterpret_cast<const char* (*)(int)>(symbol)(code);
  }

  void* const handle_;
  bool begun_ = false;
  std::string missing_;
};

std::int64_t memory_of(const Nvml& nvml, Device device, std::int64_t* free = nullptr) {
  MemoryInfo info;
  if (!nvml.call("nvmlDeviceGetMemoryInfo", device, &info)) return 0;
  if (free != nullptr) *free = static_cast<std::int64_t>(info.free);
  return static_cast<std::int64_t>(info.total);
}

std::vector<GpuInstance> instances_of(const Nvml& nvml, Device device) {
  unsigned most = 0;
  std::vector<GpuInstance> instances;
  if (!nvml.call("nvmlDeviceGetMaxMigDeviceCount", device, &most)) return instances;
  for (unsigned i = 0; i < most; ++i) {
    Device instance = nullptr;
    if (!nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &instance)) continue;
    instances.push_back({nvml.text("nvmlDeviceGetName", instance),
                         nvml.text("nvmlDeviceGetUUID", instance), memory_of(nvml, instance)});
  }
  return instances;
}

int count_nvlinks(const Nvml& nvml, Device device) {
  int up = 0;
  for (unsigned link = 0; link < kMaxNvlinks; ++link) {
    unsigned state = 0;
    if (nvml.call("nvmlDeviceGetNvLinkState", device, link, &state) && state == kEnabled) ++up;
  }
  return up;
}

Gpu describe(const Nvml& nvml, Device device) {
  Gpu gpu;
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  PciInfo pci;
  if (nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci)) gpu.pci = pci.bus_id;
  (void)nvml.call("nvmlDeviceGetCudaComputeCapability", device, &gpu.major, &gpu.minor);
  gpu.memory = memory_of(nvml, device, &gpu.memory_free);
  unsigned current = 0;
  unsigned pending = 0;
  if (nvml.call("nvmlDeviceGetMigMode", device, &current, &pending)) {
    gpu.mig = current == kEnabled;
    if (*gpu.mig) gpu.instances = instances_of(nvml, device);
  }
  gpu.nvlinks = count_nvlinks(nvml, device);
  unsigned milliwatts = 0;
  if (nvml.call("nvmlDeviceGetEnforcedPowerLimit", device, &milliwatts)) {
    gpu.power_limit = milliwatts / 1e3;
  }
  return gpu;
}

// Dense peaks of NVIDIA's data sheets. A name that begins like several is the first of them.
struct NamedPeak {
  std::string_view name;
  GpuPeak peak;
};
constexpr NamedPeak kPeaks[] = {
    {"NVIDIA B200", {1.125e15, 2.25e15, 8.0e12, 75e12}},  // an eighth of HGX B200
    {"NVIDIA H200", {494.7e12, 989.4e12, 4.8e12, 66.9e12}},
    {"NVIDIA H100 PCIe", {378e12, 756e12, 2.0e12, 51.2e12}},
    {"NVIDIA H100 NVL", {417.5e12, 835e12, 3.9e12, 60e12}},
    {"NVIDIA H100", {494.7e12, 989.4e12, 3.35e12, 66.9e12}},
    {"NVIDIA A100-SXM4-40GB", {156e12, 312e12, 1.555e12, 19.5e12}},
    {"NVIDIA A100-PCIE-40GB", {156e12, 312e12, 1.555e12, 19.5e12}},
    {"NVIDIA A100 80GB PCIe", {156e12, 312e12, 1.935e12, 19.5e12}},
    {"NVIDIA A100", {156e12, 312e12, 2.039e12, 19.5e12}},
    {"NVIDIA L40S", {183e12, 362e12, 0.864e12, 91.6e12}},
    {"NVIDIA L4", {60e12, 121e12, 0.3e12, 30.3e12}},
    {"NVIDIA A10", {62.5e12, 125e12, 0.6e12, 31.2e12}},
    {"Tesla V100-SXM2", {15.7e12, 125e12, 0.9e12, 15.7e12}},
    {"Tesla T4", {8.1e12, 65e12, 0.32e12, 8.1e12}},
};

}  // namespace

Gpus find_gpus(const std::string& library) {
  Gpus found;
  const Nvml nvml(library);
  found.missing = nvml.missing();
  if (!found.missing.empty()) return found;
  found.driver = nvml.text("nvmlSystemGetDriverVersion");
  (void)nvml.call("nvmlSystemGetCudaDriverVersion_v2", &found.cuda);
  unsigned count = 0;
  (void)nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device)) {
      found.all.push_back(describe(nvml, device));
    }
  }
  return found;
}

std::optional<GpuPeak> peak_of_gpu(const std::string& name) {
  if (name.find(" MIG ") != std::string::npos) return std::nullopt;  // a part has less
  for (const NamedPeak& entry : kPeaks) {
    if (name.rfind(entry.name, 0) != 0) continue;
    const std::string_view rest = std::string_view(name).substr(entry.name.size());
    if (rest.empty() || rest[0] == ' ' || rest[0] == '-') return entry.peak;  // "L4", not "L40"
  }
  return std::nullopt;
}

double nvlink_rate(int links) {
  constexpr double kBytesOfLink = 25e9;
  return kBytesOfLink * links;
}

}  // namespace fettle::machine
