// The NVIDIA GPUs of this machine, as the driver's management library (NVML) reports them.
//
// The library comes with the driver and is opened at run time, so neither building nor starting
// needs it. Usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fettle::machine {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// A part of a partitioned GPU (Multi-Instance GPU).
struct GpuInstance {
  std::string name;  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
  std::string uuid;
  std::int64_t memory = 0;  // bytes
};

struct Gpu {
  std::string name;
  std::string uuid;
  std::string pci;  // "00000000:18:00.0"
  int major = 0;    // compute capability
  int minor = 0;
  std::int64_t memory = 0;  // bytes
  std::int64_t memory_free = 0;
  std::optional<bool> mig;  // absent: the GPU lacks the mode
  std::vector<GpuInstance> instances;
  int nvlinks = 0;                    // active links
  std::optional<double> power_limit;  // watts
};

struct Gpus {
  std::string missing;  // why no GPU can be reported; "" = the library answered
  std::string driver;   // "580.65.06"
  int cuda = 0;         // the highest version that the driver supports: 13000 is 13.0
  std::vector<Gpu> all;
};

// `path`: of the library.
Gpus find_gpus(const std::string& path = kNvmlLibrary);

// Peak rates from the data sheet of a GPU: dense operations and bytes per second.
struct GpuPeak {
  double fp32 = 0;  // with TF32 if the GPU has it
  double bits16 = 0;
  double memory = 0;
  double fp32_exact = 0;  // without TF32
};

// Looks up the driver's name of the GPU; absent if the table lacks it. Pure.
std::optional<GpuPeak> peak_of_gpu(const std::string& name);

}  // namespace fettle::machine
