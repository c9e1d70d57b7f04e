// Which fields of a Study may change once it has trials. Pure; usable from any thread.
#pragma once

#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "api/study.h"

namespace fettle::api {

// Whether a change of the field at `path` ("spec.objectives[0].goal") acts from now on.
bool may_change(std::string_view path);

// The fields that differ and may not: everything but budget.*, suspend, ttlAfterFinished,
// objectives[].goal and trial.timeout, heartbeat, retries and gracePeriod, whose change acts from
// now on. One error a
// field, in document order, with both values and the way out.
std::vector<FieldError> forbidden_changes(const StudySpec& before, const StudySpec& after);

}  // namespace fettle::api
