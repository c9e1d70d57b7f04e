// Lineage: which trials a trial's weights went through before it, in a population. With the
// parameters of each stretch it is a schedule, which can be trained again.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

// A stretch of the training that one trial made.
struct Leg {
  const api::Trial* trial = nullptr;
  std::int64_t from_step = 0;
  std::int64_t until_step = 0;
  // One an objective, at until_step; absent where they are not finite or not known.
  std::vector<std::optional<double>> values;
};

// The legs that led to `trial` at `step`, the first one first. Shorter where a parent was deleted
// by hand: then the first leg does not begin at 0. `trials` must outlive the answer.
std::vector<Leg> lineage_of(const std::vector<api::TrialPtr>& trials, const std::string& trial,
                            std::int64_t step);

// The Study that trains the legs one after the other, from the same weights and with the same
// seeds. Of a lineage that begins at 0.
api::Study replay_of(const api::Study& study, const std::vector<Leg>& legs);

}  // namespace fettle::core
