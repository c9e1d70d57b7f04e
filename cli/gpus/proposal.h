// Proposals for the chart's gpuProfiles, which an administrator may paste, from a cluster's
// objects.
// Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/gpu/gpu_profile.h"
#include "cli/gpus/inventory.h"

namespace fettle::cli {

// Returns one profile for each way in which the cluster gives out GPUs, strictest first. All are
// valid (api::read_gpu_profiles accepts them).
std::vector<api::GpuProfile> propose_profiles(const GpuInventory& inventory);

}  // namespace fettle::cli
