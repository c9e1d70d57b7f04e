// The NVIDIA GPUs of this machine, as the driver's management library (NVML) reports them.
//
// The library comes with the driver and is opened at run time, so nothing here needs it to build or
// to start. Usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fettle::machine {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// A part of a GPU that was cut into several (Multi-Instance GPU).
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
  std::optional<bool> mig;  // absent: it has no such mode
  std::vector<GpuInstance> instances;
  int nvlinks = 0;                    // that are up
  std::optional<double> power_limit;  // watts
};

struct Gpus {
  std::string missing;  // why none can be reported; "" = the library answered
  std::string driver;   // "580.65.06"
  int cuda = 0;         // the highest version that the driver runs: 13000 is 13.0
  std::vector<Gpu> all;
};

// `path`: of the library.
Gpus find_gpus(const std::string& path = kNvmlLibrary);

// Peak rates from the data sheet of a GPU: dense operations and bytes per second.
struct GpuPeak {
  double fp32 = 0;  // with TF32 where it has it
  double bits16 = 0;
  double memory = 0;
  double fp32_exact = 0;  // without TF32
};

// By the driver's name of the GPU; absent for one that the table does not have. Pure.
std::optional<GpuPeak> peak_of_gpu(const std::string& name);

// Bytes per second each way over `links` links of NVLink 3 or 4. Pure.
double nvlink_rate(int links);

}  // namespace fettle::machine
