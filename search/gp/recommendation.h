// Recommendation: the trial to choose if results are noisy.
//
// The best of many noisy results is partly lucky, so its value will not repeat (the optimiser's
// curse, Smith and Winkler 2006). The mean of a Gaussian process at the trials averages over the
// results of their neighbours. Pure function.
#pragma once

#include <cstdint>
#include <optional>

#include "search/search.h"

namespace fettle::search::gp {

struct Recommendation {
  std::int64_t trial = 0;       // the choice; an index into History::trials
  std::int64_t looks_best = 0;  // the trial with the best result
  // In the objective's units.
  double measured = 0;  // the result of `trial`
  double expected = 0;  // the mean of the process there
  double noise = 0;     // standard deviation of a result there, for the same parameters
};

// Returns the trial with the best mean, if its result is behind the best result by less than noise
// alone makes the luckiest of all results better; otherwise the trial with the best result. nullopt
// if no model can tell: no more noise than rounding, fewer than kLeastResults results, several
// objectives, a population whose members replace each other, a space that cannot be searched.
inline constexpr std::int64_t kLeastResults = 8;
std::optional<Recommendation> recommend(const Problem& problem, const History& history);

}  // namespace fettle::search::gp
