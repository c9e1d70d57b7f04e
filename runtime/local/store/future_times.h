// Times that a clock wrote which was fast then: in a former life of the Study, before it was set
// right. Decisions compare them with the present (back-off, deadlines, when a status is due), so
// one that lies hours ahead would hold up its trial for as long, without a word.
//
// No time is later than the present afterwards. What has a length keeps it: a run is moved as a
// whole, since what it took is spent. Facts keep their order, and which of them were learnt at the
// same time. Pure functions; usable from any thread.
#pragma once

#include <cstdint>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::local {

// By how many milliseconds the latest time was ahead of `now_ms`; 0: none was, nothing is changed.
std::int64_t end_future(api::Study& study, std::int64_t now_ms);
std::int64_t end_future(api::Trial& trial, std::int64_t now_ms);

}  // namespace fettle::local
