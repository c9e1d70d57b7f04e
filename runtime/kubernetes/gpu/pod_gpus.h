// Applies a GPU placement to a pod template, and builds the claim that it refers to.
//
// Labels and variables of the Study's own template stay; a template that contradicts the placement
// (another scheduler, another node, GPUs counted twice) is refused.
// Pure functions; usable from any thread.
#pragma once

#include <string>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"
#include "kube/objects/resource.h"
#include "runtime/kubernetes/gpu/placement.h"

namespace fettle::kubernetes {

// Annotations of a Job: the GPUs of each worker, "0.25", and the profile that they come from.
inline constexpr const char* kGpusAnnotation = "fettle.dev/gpus";
inline constexpr const char* kGpuProfileAnnotation = "fettle.dev/gpu-profile";

// Adds the placement to `pod_template`, whose trial runs in `container`, a part of it. kInvalid, in
// words.
Status apply(const GpuPlacement& placement, const api::Study& study, Json& pod_template,
             Json& container);

// The claim that the pods of the Study refer to: its name, which differs if the claimed devices
// differ, its kind (a ResourceClaimTemplate, or the ResourceClaim that all pods share) and the
// object, which goes with its Study. Requires placement.claim.
std::string gpu_claim_name(const api::Study& study, const GpuPlacement& placement);
const kube::Resource& gpu_claim_resource(const GpuPlacement& placement);
Json build_gpu_claim(const api::Study& study, const GpuPlacement& placement);

}  // namespace fettle::kubernetes
