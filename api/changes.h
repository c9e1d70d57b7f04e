// Which fields of a Study may change once it has trials, and which of a Trial at all. The rules of
// the CustomResourceDefinitions follow from these predicates (crds/definition.cpp).
// Pure; usable from any thread.
#pragma once

#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "api/study.h"
#include "base/json.h"

namespace fettle::api {

// Whether a change of the field at `path` ("spec.objectives[0].goal") acts from now on.
bool may_change(std::string_view path);

// The fields that differ and may not: everything but budget.*, suspend, ttlAfterFinished,
// objectives[].goal and reference, and trial.timeout, heartbeat, retries, gracePeriod,
// passEnvironment, queue and queuePriorityClass, whose change acts from now on. One error a field,
// in document order, with both values and the way out.
std::vector<FieldError> forbidden_changes(const StudySpec& before, const StudySpec& after);

// The same of a Trial: how far it goes, on how many workers, and whether it stops may change; what
// its results depend on may not.
bool trial_may_change(std::string_view path);

// What differs between two specs, as documents, and may not. `why`: what follows the two values.
std::vector<FieldError> forbidden_differences(const Json& before, const Json& after,
                                              bool (*may_change)(std::string_view),
                                              std::string_view why);

// Why a Study cannot join a queue, or leave it: who starts its trials would change.
inline constexpr std::string_view kQueueStays =
    "may be another queue, but not be added or removed once there are trials";

// Why a field of a Trial may not change.
inline constexpr std::string_view kTrialFieldIsFixed =
    "may not change: the trial's results depend on it";

}  // namespace fettle::api
