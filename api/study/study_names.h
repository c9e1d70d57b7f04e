// Names that a Study may give where Kubernetes, not an enum of Fettle, defines the values.
// Pure functions; usable from any thread.
#pragma once

#include <span>
#include <string_view>

#include "api/study/study.h"

namespace fettle::api {

// Names of the access modes of PersistentVolumeClaims.
std::span<const std::string_view> access_mode_names();
// Values of trial.gang: the schedulers that can place all workers of a trial together.
std::span<const std::string_view> gang_names();
// Whether trial.queue names a queue of the gang's own scheduler instead of Kueue's.
bool gang_has_queue(std::string_view gang);
// Names of the policies for pulling a container's image.
std::span<const std::string_view> image_pull_policy_names();

}  // namespace fettle::api
