// A libnvidia-ml.so.1 for tests: answers like the driver of a machine with an H100 that is cut in
// two and an older GPU whose driver knows neither MIG nor NVLink. For tests only.
#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalid = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

// Handles are indices into this list; the parts of the first GPU come after the GPUs.
constexpr std::uintptr_t kH100 = 1;
constexpr std::uintptr_t kT4 = 2;
constexpr std::uintptr_t kFirstPart = 3;

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

std::uintptr_t id(void* device) { return reinterpret_cast<std::uintptr_t>(device); }

int give(const char* text, char* to, unsigned length) {
  if (std::strlen(text) >= length) return kInvalid;
  std::strcpy(to, text);
  return kSuccess;
}

}  // namespace

// Names and handles are NVML's.
// NOLINTBEGIN(readability-identifier-naming, performance-no-int-to-ptr)
extern "C" {

int nvmlInit_v2() { return kSuccess; }
int nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(int) { return "an error"; }
int nvmlSystemGetDriverVersion(char* to, unsigned length) { return give("580.65.06", to, length); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(kH100 + index);
  return kSuccess;
}
// The inverse of nvmlDeviceGetUUID.
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const auto is = [uuid](const char* other) { return std::strcmp(uuid, other) == 0; };
  if (!is("GPU-1") && !is("GPU-2") && !is("MIG-5")) return kNotFound;
  *device = reinterpret_cast<void*>(is("GPU-1") ? kH100 : is("GPU-2") ? kT4 : kFirstPart);
  return kSuccess;
}
int nvmlDeviceGetName(void* device, char* to, unsigned length) {
  if (id(device) == kH100) return give("NVIDIA H100 80GB HBM3", to, length);
  if (id(device) == kT4) return give("Tesla T4", to, length);
  return give("NVIDIA H100 80GB HBM3 MIG 3g.40gb", to, length);
}
int nvmlDeviceGetUUID(void* device, char* to, unsigned length) {
  if (id(device) >= kFirstPart) return give("MIG-5", to, length);
  return give(id(device) == kH100 ? "GPU-1" : "GPU-2", to, length);
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  std::strcpy(pci->bus_id, id(device) == kH100 ? "00000000:18:00.0" : "00000000:3B:00.0");
  return kSuccess;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = id(device) == kH100 ? 9 : 7;
  *minor = id(device) == kH100 ? 0 : 5;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  const unsigned long long gibibytes = id(device) == kH100 ? 80 : id(device) == kT4 ? 15 : 40;
  *memory = {gibibytes << 30, (gibibytes - 1) << 30, 1ULL << 30};
  return kSuccess;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (id(device) != kH100) return kNotSupported;
  *current = *pending = 1;
  return kSuccess;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return kSuccess;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** device) {
  if (index >= 2) return kNotFound;
  *device = reinterpret_cast<void*>(kFirstPart + index);
  return kSuccess;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* state) {
  if (id(device) != kH100) return kNotSupported;
  *state = link < 18 ? 1 : 0;
  return kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  *milliwatts = id(device) == kH100 ? 700'000 : 70'000;
  return kSuccess;
}

// The T4 computes half of its time, and every query costs it a joule.
int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
  if (id(device) != kT4) return kNotSupported;
  *utilization = {50, 10};
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (id(device) != kT4) return kNotSupported;
  *milliwatts = 65'500;
  return kSuccess;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (id(device) != kT4) return kNotSupported;
  static std::atomic<unsigned long long> used{1'000'000};
  *millijoules = used += 1000;
  return kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming, performance-no-int-to-ptr)
