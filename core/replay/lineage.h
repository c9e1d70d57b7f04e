// Lineage: the trials of a population through which a trial's weights were handed down. With the
// parameters of each stretch it is a schedule, which can be trained again.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

// The stretch of a training that one trial did.
struct Leg {
  const api::Trial* trial = nullptr;
  std::int64_t from_step = 0;
  std::int64_t until_step = 0;
  // One for each objective, at until_step; absent if it is not finite or unknown.
  std::vector<std::optional<double>> values;
};

// The legs that led to `trial` at `step`, oldest first. If a parent was deleted by hand, the first
// leg does not begin at 0. `trials` are sorted by index and must outlive the result.
std::vector<Leg> lineage_of(const std::vector<api::TrialPtr>& trials, const std::string& trial,
                            std::int64_t step);

// A Study that trains these legs one after the other, from the same weights and with the same
// seeds. Requires legs that begin at 0.
api::Study replay_of(const api::Study& study, const std::vector<Leg>& legs);

}  // namespace fettle::core
