#include "runtime/kubernetes/run/gpu_options.h"

#include <memory>

#include "core/facts/sizing.h"
#include "runtime/kubernetes/gpu/catalogue.h"

namespace fettle::kubernetes {

Result<JobOptions> options_in_force(const JobOptions& options, const api::Study& study,
                                    std::int64_t now_ms) {
  JobOptions out = options;
  // Without a catalogue, options.gpu_profiles never change.
  if (!study.spec.trial.gpu || options.gpu_catalogue == nullptr) return out;
  FETTLE_ASSIGN(const GpuCatalogue::Profiles profiles, options.gpu_catalogue->profiles(now_ms));
  out.gpu_profiles = *profiles;
  return out;
}

Result<std::optional<GpuPlacement>> place_now(const api::Study& study, const JobOptions& options) {
  auto placed = place_gpus(study.spec, options.gpu_profiles);
  if (placed.ok()) return placed;
  return Error{ErrorCode::kUnavailable, placed.error().message};
}

void add_gpus(core::Capacity& capacity, const api::Study& study, const JobOptions& options,
              std::int64_t now_ms) {
  if (options.gpu_catalogue) capacity.gpu_changed_ms = options.gpu_catalogue->changed_ms();
  const Result<JobOptions> current = options_in_force(options, study, now_ms);
  if (!current.ok()) return;
  if (core::sizes_gpu_memory(study.spec)) {
    capacity.gpu_memory = most_memory(study.spec, current->gpu_profiles);
    return;
  }
  const auto gpus = place_gpus(study.spec, current->gpu_profiles);
  if (!gpus.ok() || !*gpus) return;
  capacity.gpu = std::make_shared<const api::GpuChoice>(choice_of(**gpus));
}

}  // namespace fettle::kubernetes
