// The file in which the launch configurations that were tuned for a GPU lie from one run to the
// next:
//
//   {"device": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "cuda": "13.0",
//    "fettle": "0.1.0",
//    "kernels": {"optimizer/update": {"threads": 512, "blocks_per_multiprocessor": 4}}}
//
// One file a kind of GPU, below ~/.cache/fettle/kernels (FETTLE_KERNEL_CACHE). It counts for the
// device, the version of CUDA and the version of Fettle that it names, and as a whole or not at
// all. Written by the program, read by libfettle_cuda.so. Any thread; any number of processes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "kernels/cuda/tunable.h"

namespace fettle::kernels::cuda {

// What a configuration was measured for.
struct GpuKind {
  std::string name;
  std::string compute_capability;  // "9.0"
  std::string cuda;                // of the runtime: "13.0"
  std::string fettle;
  bool operator==(const GpuKind&) const = default;
};

// Those that differ from the usual, or those of all.
using LaunchConfigs = std::map<std::string, LaunchConfig, std::less<>>;

// "" where nothing is to be kept (FETTLE_KERNEL_CACHE=off, or no home).
std::string launch_file_path(const GpuKind& kind);

Json to_json(const GpuKind& kind, const LaunchConfigs& configs);

// Errors: what is wrong with the text, or for what else it was measured.
Result<LaunchConfigs> read_launch_configs(std::string_view text, const GpuKind& kind);

// From its file: none where there is no file. Errors name it, and say the way out.
Result<LaunchConfigs> load_launch_configs(const GpuKind& kind);

// Replaces the file in one step. Returns its path. Errors: it cannot be written, or nothing is to
// be kept.
Result<std::string> save_launch_configs(const GpuKind& kind, const LaunchConfigs& configs);

}  // namespace fettle::kernels::cuda
