// Times that a clock wrote while it was ahead, before it was corrected and the Study resumed.
// Decisions compare them with the present (back-off, deadlines, when a status is due), so a time
// that lies hours ahead would silently delay its trial for as long.
//
// No time is later than the present afterwards. Durations stay: a run is moved as a whole, since
// its time is spent. Facts keep their order, and which of them were learnt at the same time. Pure
// functions; usable from any thread.
#pragma once

#include <cstdint>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::local {

// Returns how many milliseconds the latest time was ahead of `now_ms`; 0: none was, and nothing is
// changed.
std::int64_t clamp_future_times(api::Study& study, std::int64_t now_ms);
std::int64_t clamp_future_times(api::Trial& trial, std::int64_t now_ms);

}  // namespace fettle::local
