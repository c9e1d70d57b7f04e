// JobOptions: settings of the operator for the Jobs and pods that it builds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/gpu/gpu_profile.h"
#include "base/json.h"
#include "runtime/kubernetes/gpu/catalogue.h"

namespace fettle::kubernetes {

struct JobOptions {
  std::string trainer_image;  // of the built-in trainer
  Json trainer_pod = {};      // patch of its pod (pod_patch.h); null = none
  // How long the workers of a gang may wait until all have a node (gang.h).
  std::int64_t gang_timeout_ms = 120'000;
  // How long a pod that has a node may take to start before its run gives the node back.
  std::int64_t start_timeout_ms = 1'800'000;
  // Runs of all Studies when the Job is built: all of them report to one API server.
  std::size_t concurrent_runs = 0;
  std::vector<api::GpuProfile> gpu_profiles = api::default_gpu_profiles();  // in order
  // The source from which JobRuns reads them again; null = they never change.
  std::shared_ptr<GpuCatalogue> gpu_catalogue = nullptr;
};

}  // namespace fettle::kubernetes
