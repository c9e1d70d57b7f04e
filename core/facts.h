// Facts: what is to be written down about a trial before any decision may rest on it.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

// The facts about `trial` that its status shows and its list of facts lacks, in order: rung values
// first, then how it ended. `rungs` are search::rung_steps of the Study, ascending. seq is left 0.
//
// A rung takes the first point of the curve at or after its step that has all objectives. A trial
// that has not got there says nothing yet. Where trials pause at rungs it takes the newest values
// up to its step, if there are any; and one that exited with 0 before it was there has said all.
std::vector<api::Fact> unrecorded_facts(const api::Study& study, const api::Trial& trial,
                                        const std::vector<std::int64_t>& rungs,
                                        std::int64_t now_ms);

}  // namespace fettle::core
