// Why a run that exited with 0 has no result, in words that say what to change.
// Pure functions; usable from any thread.
#pragma once

#include <string>

#include "core/trial/run_outcome.h"

namespace fettle::core {

// Returns "" if the run has a result: a report of its own, or of a run before it that was cut short
// and that it continued. A program saves its checkpoint and then reports; one that is killed in
// between has nothing left to report when it continues from that checkpoint.
std::string explain_missing_objective(const EndedRun& ended);

// Whether the run has no result because the run before it was cut short and its reports were lost:
// nothing was left to report, and neither run is to blame.
bool is_result_lost(const EndedRun& ended);

// Whether the run reported a metric under nearly the name of an objective that it never reported.
bool is_misspelt(const EndedRun& ended);

// The end of a sentence about a run without a report: "; SILENCE", or "".
std::string with_reason(const std::string& silence);

}  // namespace fettle::core
