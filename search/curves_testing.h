// Learning curves made up for tests, and workers that train along them under whatever a Problem
// says of who goes on. One tick is one step of every worker, so there is nothing random about it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "search/search.h"

namespace fettle::search::testing {

// The loss of a configuration after a number of steps.
using Curves = std::function<double(const Json& parameters, std::int64_t step)>;

struct CurveFamily {
  std::string name;
  Curves loss;
};
// Over x, y and z in [0, 1], for resource.max 27; the best end is 0. In turn: early losses rank
// trials as the last ones do; they say nothing; they rank the best last.
std::vector<CurveFamily> curve_families();

struct Training {
  History history;
  double best_result = 0;        // loss of the best trial that came to its last step
  std::int64_t steps = 0;        // trained in all
  std::vector<std::string> log;  // "3 begins until 1", "3 goes on until 3"
};
// Trains with `workers` at once until so many ticks have passed or nothing is left to do.
Training train(const Problem& problem, const Curves& loss, std::int64_t workers,
               std::int64_t ticks);

}  // namespace fettle::search::testing
