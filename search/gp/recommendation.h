// Recommendation: which trial to take where results are noisy.
//
// The best of many noisy results is the luckiest as much as the best, so the value that it showed
// is not to be expected again (the optimiser's curse, Smith and Winkler 2006). The mean of a
// Gaussian process at the trials that were run averages over what their neighbours showed. Pure
// function.
#pragma once

#include <cstdint>
#include <optional>

#include "search/search.h"

namespace fettle::search::gp {

struct Recommendation {
  std::int64_t trial = 0;       // to take; an index into History::trials
  std::int64_t looks_best = 0;  // the one with the best result
  // In the objective's units.
  double measured = 0;  // the result of `trial`
  double expected = 0;  // the mean of the process there
  double noise = 0;     // standard deviation of a result there, for the same parameters
};

// Among the trials with a result: the one with the best mean, if its result is behind the best one
// by less than the noise of the two; otherwise the one with the best result. Nothing where no
// model can tell: results speak for no more noise than rounding, fewer than kLeastResults, several
// objectives, a population whose members take over from each other, a space that cannot be
// searched.
inline constexpr std::int64_t kLeastResults = 8;
std::optional<Recommendation> recommend(const Problem& problem, const History& history);

}  // namespace fettle::search::gp
