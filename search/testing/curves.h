// Learning curves made up for tests and measurements, and workers that train along them under
// whatever a Problem says of promotions. One tick is one step of every worker, so there is nothing
// random about it.
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

// Something to be trained: kCurveSteps steps; the loss at the last one is what counts.
struct CurveProblem {
  std::vector<api::Parameter> parameters;
  Curves loss;
  Curves clear;  // the same without the noise of single steps
};

// Kinds of learning curves. Each has as many problems as there are numbers: 3 to 6 parameters, of
// which some matter more than others, with the best end anywhere.
//   steady:   early losses rank trials as the last ones do
//   noisy:    the same under noise that is larger than what sets good trials apart
//   rates:    one parameter is how fast a trial learns, and with too much of it nothing is learnt
//   overfit:  some fall fast and rise again
//   late:     in the first fifth of the steps the losses say nothing
//   crossing: the better the end, the slower the beginning: early losses rank the best last
std::vector<std::string> curve_families();
CurveProblem curve_problem(const std::string& family, std::uint64_t number);

struct Training {
  History history;
  double best_result = 0;  // loss of the best trial that came to its last step
  // Each trial that was then the best of those, with the tick in which it was.
  struct Best {
    std::int64_t tick = 0;
    std::int64_t trial = 0;
  };
  std::vector<Best> bests;
  std::int64_t steps = 0;        // trained in all
  std::vector<std::string> log;  // "3 begins until 1", "3 resumes until 3"
};
// Trains with `workers` at once until `ticks` ticks have passed or nothing is left to do.
Training train(const Problem& problem, const Curves& loss, std::int64_t workers,
               std::int64_t ticks);

}  // namespace fettle::search::testing
