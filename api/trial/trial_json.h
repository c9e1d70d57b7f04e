// Trial and Report from and to JSON. Errors of read_* list every wrong field, one a line.
// read_x(write_x(y)) gives y, except that non-finite metrics of a Report become null and come back
// as NaN: a metric that is present but not finite (infeasible) differs from a missing one (a
// failure). Pure functions; usable from any thread.
#pragma once

#include "api/fields/field_errors.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

Json write_trial(const Trial& trial);
Result<Trial> read_trial(const Json& document, UnknownFields unknown = UnknownFields::kMistakes);

Json write_trial_spec(const TrialSpec& spec);
Json write_trial_status(const TrialStatus& status);

Json write_report(const Report& report);
Result<Report> read_report(const Json& document, UnknownFields unknown = UnknownFields::kMistakes);

}  // namespace fettle::api
