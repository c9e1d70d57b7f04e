// Why a run that exited with 0 has no result, in words that say what to change.
// Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "api/study.h"
#include "api/trial.h"
#include "core/plan.h"

namespace fettle::core {

// "" if it has one. `report` is the trial's newest, `record` that of the run.
std::string explain_no_result(const api::StudySpec& study, const api::TrialSpec& trial,
                              const std::optional<api::Report>& report,
                              const api::RunRecord& record, const Run& run);

// The end of a sentence about a run without a report: "; SILENCE", or "".
std::string with_reason(const std::string& silence);

}  // namespace fettle::core
