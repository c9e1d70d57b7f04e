// Facts: observations about a trial that are stored before a decision may use them.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

// The facts about `trial` that follow from its status and are not in its list yet, in order: rung
// values first, then how it ended. `rungs` are search::rung_steps of the Study, ascending. seq is
// left 0. A replicate has no rung values: it runs to its end, and as one of the best it would only
// raise what others are compared with.
//
// The value at a rung is taken from the first point of the curve at or after its step that has all
// objectives; until the trial has reported such a point there is no fact. If trials pause at rungs,
// the newest value up to the step is taken instead if there is one; and as a trial that exited with
// 0 before the step reports nothing more, its rung then gets the last reported value.
std::vector<api::Fact> unrecorded_facts(const api::Study& study, const api::Trial& trial,
                                        const std::vector<std::int64_t>& rungs,
                                        std::int64_t now_ms);

}  // namespace fettle::core
