// The part of JobRuns that knows the GPU profiles in force, and makes the claims that pods refer
// to.
#include <memory>

#include "core/gpu_memory.h"
#include "runtime/kubernetes/gpu/placement.h"
#include "runtime/kubernetes/gpu/pod_gpus.h"
#include "runtime/kubernetes/run/job_runs.h"

namespace fettle::kubernetes {

Result<JobOptions> JobRuns::options_for(const api::Study& study) {
  JobOptions options = options_;
  if (!study.spec.trial.gpu || options.gpu_catalogue == nullptr) return options;
  FETTLE_ASSIGN(const GpuCatalogue::Profiles profiles,
                options.gpu_catalogue->profiles(clock_.now_ms()));
  options.gpu_profiles = *profiles;
  return options;
}

// Returns kUnavailable for place_gpus()'s kInvalid: the Study was checked when it began, so an
// administrator has changed the profiles since. The run waits for them, and does not fail.
Result<std::optional<GpuPlacement>> JobRuns::place_now(const api::Study& study,
                                                       const JobOptions& options) {
  auto placed = place_gpus(study.spec, options.gpu_profiles);
  if (placed.ok()) return placed;
  return Error{ErrorCode::kUnavailable, placed.error().message};
}

std::shared_ptr<const api::GpuChoice> JobRuns::gpu_choice(const api::Study& study) {
  if (core::sizes_gpu_memory(study.spec)) return nullptr;  // each trial has its own
  const Result<JobOptions> options = options_for(study);
  if (!options.ok()) return nullptr;
  const auto gpus = place_gpus(study.spec, options->gpu_profiles);
  if (!gpus.ok() || !*gpus) return nullptr;
  return std::make_shared<const api::GpuChoice>(choice_of(**gpus));
}

// For trials that request the GPU memory that they need.
std::optional<double> JobRuns::most_gpu_memory(const api::Study& study) {
  if (!core::sizes_gpu_memory(study.spec)) return std::nullopt;
  const Result<JobOptions> options = options_for(study);
  return options.ok() ? most_memory(study.spec, options->gpu_profiles) : std::nullopt;
}

// The name holds a part of the Study's uid and a hash of the claimed devices, so an existing claim
// of this name is the same claim.
Status JobRuns::ensure_gpu_claim(const api::Study& study, const GpuPlacement& placement) {
  if (placement.claim.is_null()) return success();
  const std::string key = study.metadata.uid + "/" + gpu_claim_name(study, placement);
  const auto made = ensure(gpu_claim_resource(placement), study.metadata.ns, key,
                           [&] { return build_gpu_claim(study, placement); });
  return made.ok() ? success() : Status(made.error());
}

// Makes the claim of a waiting run again, in case a user deleted it.
Status JobRuns::restore_gpu_claim(const api::Study& study) {
  const Result<JobOptions> options = options_for(study);
  if (!options.ok()) return success();  // a run that has a Job does not need them
  const auto gpus = place_gpus(study.spec, options->gpu_profiles);
  return gpus.ok() && *gpus ? ensure_gpu_claim(study, **gpus) : success();
}

}  // namespace fettle::kubernetes
