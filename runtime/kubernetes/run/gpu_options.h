// The GPU profiles that are in force now, and what a Study gets by them.
// Functions of the options and the time; thread-safe, as the catalogue is (gpu/catalogue.h).
#pragma once

#include <cstdint>
#include <optional>

#include "api/study/study.h"
#include "base/result.h"
#include "core/plan.h"
#include "runtime/kubernetes/gpu/placement.h"
#include "runtime/kubernetes/pod/job_options.h"

namespace fettle::kubernetes {

// The options with the profiles that are in force now. kUnavailable: none is.
Result<JobOptions> options_in_force(const JobOptions& options, const api::Study& study,
                                    std::int64_t now_ms);

// `options`: in force. kUnavailable: no profile fits; the Study was checked when it began, so an
// administrator has changed the profiles since. The run waits for them, and does not fail.
Result<std::optional<GpuPlacement>> place_now(const api::Study& study, const JobOptions& options);

// Adds the GPUs that the Study's workers get now, or, for trials that request the GPU memory that
// they need, the largest amount. Adds neither if no profile is in force or fits.
void add_gpus(core::Capacity& capacity, const api::Study& study, const JobOptions& options,
              std::int64_t now_ms);

}  // namespace fettle::kubernetes
