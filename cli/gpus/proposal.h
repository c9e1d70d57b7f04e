// What an administrator may paste into the chart's gpuProfiles, from what a cluster's objects say.
// Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/gpu_profile.h"
#include "cli/gpus/inventory.h"

namespace fettle::cli {

// One profile for each way in which the cluster gives out GPUs, what enforces most first. All are
// valid (api::read_gpu_profiles takes them).
std::vector<api::GpuProfile> propose_profiles(const GpuInventory& inventory);

}  // namespace fettle::cli
