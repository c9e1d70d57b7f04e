// Farm: trains whole Studies for tests: workers, trials with weights that their successors inherit,
// and checkpoints kept only as long as population.h promises to need them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "search/search.h"

namespace fettle::search::testing {

struct FarmTrial {
  std::uint64_t index = 0;
  Json parameters;
  std::uint64_t step = 0;       // the step being trained
  std::vector<double> weights;  // of the training; a successor starts with a copy
};
// Trains one step and returns the loss after it.
using Train = std::function<double(FarmTrial&)>;

struct FarmSettings {
  std::int64_t workers = 1;
  double laziness = 0;      // probability that a worker does nothing in a tick
  double failure = 0;       // probability that a step fails (20 failures at most)
  double not_a_number = 0;  // probability that the value at a rung is not finite
  std::uint64_t seed = 1;
};

struct Harvest {
  History history;
  std::int64_t results = 0;  // trials that reached the last step
  std::int64_t steps = 0;    // trained in total
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::string> complaints;  // violated expectations
};

Harvest work(const Problem& problem, const FarmSettings& settings, const Train& train);

}  // namespace fettle::search::testing
