// Rules of change: which fields of a Study may change once it has trials, and which fields of a
// Trial ever may. The rules of the CustomResourceDefinitions follow from these predicates
// (crds/definition.cpp).
// Pure; usable from any thread.
#pragma once

#include <string_view>
#include <vector>

#include "api/fields/field_error.h"
#include "api/study/study.h"
#include "base/json.h"

namespace fettle::api {

// Whether the field at `path` ("spec.objectives[0].goal") may change; a new value acts from then
// on.
bool may_change(std::string_view path);

// Returns an error for each field that differs although it may not. These may change, from now on:
// budget.*, suspend, ttlAfterFinished, objectives[].goal and reference, and trial.timeout,
// heartbeat, retries, gracePeriod, passEnvironment, execution, slots, queue and queuePriorityClass.
// Errors are in document order, with both values and a remedy.
std::vector<FieldError> forbidden_changes(const StudySpec& before, const StudySpec& after);

// The same for a Trial: how far it goes, its number of workers, and whether it stops may change;
// fields on which its results depend may not.
bool trial_may_change(std::string_view path);

// Returns the differences between two specs (as documents) that may not be. `why` follows the two
// values in each message.
std::vector<FieldError> forbidden_differences(const Json& before, const Json& after,
                                              bool (*may_change)(std::string_view),
                                              std::string_view why);

// Why a Study can neither join nor leave a queue: another program would start its trials.
inline constexpr std::string_view kQueueStays =
    "may be another queue, but not be added or removed once there are trials";

// Why a field of a Trial may not change.
inline constexpr std::string_view kTrialFieldIsFixed =
    "may not change: the trial's results depend on it";

}  // namespace fettle::api
