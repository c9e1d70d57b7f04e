// Fitting: how many trials of a Study one machine can run at once, and the field that limits them.
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "api/study/study.h"
#include "runtime/local/run/room.h"

namespace fettle::local {

// The resources that a run with that many workers takes.
Need need_of(const api::Study& study, std::int64_t workers);
// The resources that a worker takes, with all its slots: they share its GPUs.
Need need_of_worker(const api::Study& study);

struct Fitting {
  std::int64_t trials = 1;  // at least one: a trial alone may have the whole machine
  std::string why;          // "this machine has 2 cores and each trial takes 1 (...)"
};

// For trials with the fewest workers that they may have.
Fitting fitting_trials(const api::Study& study, const Room& room);

// Says to people, once, that fewer trials run at once than the Study's parallelism says, and why.
// "" = as many run.
std::string explain_parallelism(const api::Study& study, const Room& room);

}  // namespace fettle::local
