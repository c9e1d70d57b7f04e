#include "base/machine/gpu.h"

#include <string_view>

#include "base/machine/nvml.h"

namespace fettle::machine {
namespace {

using nvml::Device;
using nvml::kEnabled;

constexpr unsigned kMaxNvlinks = 18;

std::int64_t memory_of(const nvml::Library& library, Device device, std::int64_t* free = nullptr) {
  nvml::MemoryInfo info;
  if (!library.call("nvmlDeviceGetMemoryInfo", device, &info)) return 0;
  if (free != nullptr) *free = static_cast<std::int64_t>(info.free);
  return static_cast<std::int64_t>(info.total);
}

std::vector<GpuInstance> instances_of(const nvml::Library& library, Device device) {
  unsigned most = 0;
  std::vector<GpuInstance> instances;
  if (!library.call("nvmlDeviceGetMaxMigDeviceCount", device, &most)) return instances;
  for (unsigned i = 0; i < most; ++i) {
    Device instance = nullptr;
    // `most` counts the possible parts; this index has none.
    if (!library.call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &instance)) continue;
    instances.push_back({library.text("nvmlDeviceGetName", instance),
                         library.text("nvmlDeviceGetUUID", instance),
                         memory_of(library, instance)});
  }
  return instances;
}

int count_nvlinks(const nvml::Library& library, Device device) {
  int up = 0;
  for (unsigned link = 0; link < kMaxNvlinks; ++link) {
    unsigned state = 0;
    if (library.call("nvmlDeviceGetNvLinkState", device, link, &state) && state == kEnabled) ++up;
  }
  return up;
}

// Values that the driver does not report keep their defaults.
Gpu describe(const nvml::Library& library, Device device) {
  Gpu gpu;
  gpu.name = library.text("nvmlDeviceGetName", device);
  gpu.uuid = library.text("nvmlDeviceGetUUID", device);
  nvml::PciInfo pci;
  if (library.call("nvmlDeviceGetPciInfo_v3", device, &pci)) gpu.pci = pci.bus_id;
  (void)library.call("nvmlDeviceGetCudaComputeCapability", device, &gpu.major, &gpu.minor);
  gpu.memory = memory_of(library, device, &gpu.memory_free);
  gpu.mig = nvml::is_cut(library, device);
  if (gpu.mig.value_or(false)) gpu.instances = instances_of(library, device);
  gpu.nvlinks = count_nvlinks(library, device);
  unsigned milliwatts = 0;
  if (library.call("nvmlDeviceGetEnforcedPowerLimit", device, &milliwatts)) {
    gpu.power_limit = milliwatts / 1e3;
  }
  return gpu;
}

// Dense peaks from NVIDIA's data sheets: FLOP/s in TF32 (in fp32 before Ampere), FLOP/s in 16 bits,
// bytes per second, FLOP/s in fp32 without TF32. The first matching prefix counts.
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

Gpus find_gpus(const std::string& path) {
  Gpus found;
  const nvml::Library library(path);
  found.missing = library.missing();
  if (!found.missing.empty()) return found;
  found.driver = library.text("nvmlSystemGetDriverVersion");
  (void)library.call("nvmlSystemGetCudaDriverVersion_v2", &found.cuda);
  unsigned count = 0;
  (void)library.call("nvmlDeviceGetCount_v2", &count);  // stays 0 if it fails
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (library.call("nvmlDeviceGetHandleByIndex_v2", i, &device)) {
      found.all.push_back(describe(library, device));
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

}  // namespace fettle::machine
