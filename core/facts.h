// Facts: observations about a trial that are stored before a decision may use them.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

// The facts about `trial` that follow from its status and are not in its list yet, in order: rung
// values first, then how it ended. `rungs` are search::rung_steps of the Study, ascending. seq is
// left 0.
//
// The value at a rung is that of the first point of the curve at or after its step that has all
// objectives; until the trial has reported such a point there is no fact. Where trials pause at
// rungs it is the newest value up to the step, if there is one. There a trial that exited with 0
// before the step will report nothing more: its rung gets the last value that was reported.
std::vector<api::Fact> unrecorded_facts(const api::Study& study, const api::Trial& trial,
                                        const std::vector<std::int64_t>& rungs,
                                        std::int64_t now_ms);

}  // namespace fettle::core
