// Drivers and GPUs that the trainer's CUDA backend supports, as its images are built. Pure; usable
// from any thread.
#pragma once

#include <string>

#include "base/machine/gpu.h"

namespace fettle::machine {

// CUDA 13.0, whose first driver is 580. Newer drivers run programs built for an earlier CUDA.
inline constexpr int kLeastCuda = 13000;
inline constexpr const char* kLeastDriver = "580";
inline constexpr int kLeastCapability = 8;  // Ampere
inline constexpr int kMostCapability = 12;  // Blackwell, by way of PTX from 10.1 on

// Why the backend cannot use any GPU of this machine, with a remedy; "": the driver suffices.
std::string why_no_driver(const Gpus& gpus);
// Why the backend cannot use this GPU; "": it can.
std::string why_no_gpu(const Gpu& gpu);

// Warning for a training with backend `auto` that found the CUDA backend missing (`reason`) on a
// machine with a GPU. "": this machine has no GPU.
std::string unused_gpu_warning(const Gpus& gpus, const std::string& reason);

}  // namespace fettle::machine
