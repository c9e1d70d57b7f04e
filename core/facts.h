// Facts: what is recorded about a trial before any decision may rest on it.
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
// The value at a rung is that of the first point of the curve at or after its step that has all
// objectives; before the trial has reached that step there is no fact. Where trials pause at rungs,
// it is the newest value up to the step, if there is one, and a trial that exited with 0 before the
// step will report nothing more: its rung gets what it has reported.
std::vector<api::Fact> unrecorded_facts(const api::Study& study, const api::Trial& trial,
                                        const std::vector<std::int64_t>& rungs,
                                        std::int64_t now_ms);

}  // namespace fettle::core
