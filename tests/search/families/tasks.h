// Random problems to compare samplers during their development: families of made-up objectives,
// endless numbers of each, so that no sampler is tuned to the problems that a benchmark reports.
//
// Task i of a kind is a function of (kind, i) alone. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/study/study.h"

namespace fettle::search::families {

// A place: the value of each parameter on the unit interval, the index of its choice, or NaN if it
// is inactive.
using Place = std::vector<double>;

struct Task {
  std::vector<api::Parameter> parameters;
  std::function<double(const Place&)> loss;  // to be minimised; NaN: infeasible
  double noise = 0;         // deviation of the reported loss, as a share of the loss's own
  std::int64_t trials = 0;  // budget
};

// Returns "bowl", "ripples" ...; tasks.cpp describes each.
const std::vector<std::string>& kinds();

Task make_task(const std::string& kind, std::uint64_t number);

}  // namespace fettle::search::families
