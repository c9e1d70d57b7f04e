// Synthetic learning curves for tests and measurements, and workers that train along them under a
// Problem's promotions and early stopping. One tick is one step of every worker, so training is
// deterministic.
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

inline constexpr std::int64_t kCurveSteps = 27;

// A training task of kCurveSteps steps; only the loss at the last step counts.
struct CurveProblem {
  std::vector<api::Parameter> parameters;
  Curves loss;
  Curves clear;  // the same without the noise of single steps
};

// Kinds of learning curves. Each has as many problems as there are numbers: 3 to 6 parameters of
// different importance, with the best end anywhere.
//   steady:   early losses rank trials as the last ones do
//   noisy:    the same with noise larger than the differences between good trials
//   rates:    one parameter is the learning rate, and too large a rate learns nothing
//   overfit:  some fall fast and rise again
//   late:     the losses in the first fifth of the steps carry no information
//   crossing: the better the end, the slower the beginning: early losses rank the best last
std::vector<std::string> curve_families();
CurveProblem curve_problem(const std::string& family, std::uint64_t number);

struct Training {
  History history;
  double best_result = 0;  // loss of the best trial that reached its last step
  // Each trial that was the best completed one at its end, with the tick of its end.
  struct Best {
    std::int64_t tick = 0;
    std::int64_t trial = 0;
  };
  std::vector<Best> bests;
  std::int64_t steps = 0;        // trained in total
  std::vector<std::string> log;  // "3 begins until 1", "3 resumes until 3"
};
// Trains with `workers` at once until `ticks` ticks have passed or no work is left.
Training train(const Problem& problem, const Curves& loss, std::int64_t workers,
               std::int64_t ticks);

}  // namespace fettle::search::testing
