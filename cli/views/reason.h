// Reason: explains a trial: the facts known when its point was chosen, the expectation of its
// value, and its result. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cli/views/view.h"
#include "search/explain/model.h"
#include "search/search.h"

namespace fettle::cli {

// Prediction of a forest over the results so far for the point (search/explain/model.h).
struct Expectation {
  double mean = 0;  // of the first objective
  double deviation = 0;
  double beats = 0;        // share of random points with a worse expectation
  std::size_t trials = 0;  // from which the forest learnt
};

// Numbers of the study when the point was chosen.
struct KnownBefore {
  std::int64_t trials = 0;
  std::int64_t ended = 0;      // of these trials
  std::optional<double> best;  // of the first objective, among final results
};

// Rank of the trial's final first objective among all present results.
struct Ranking {
  double value = 0;
  std::int64_t rank = 0;  // 1 = the best
  std::int64_t of = 0;    // results
};

struct Reason {
  std::string sampler;  // description
  KnownBefore before;
  std::optional<search::Explanation> explanation;  // the sampler's own
  std::optional<Expectation> expectation;          // absent: too few trials had ended
  std::optional<Ranking> ranking;                  // absent: no feasible result
};

// `trial` is one of view.trials. Errors: make_sampler's.
Result<Reason> reason_of(const RunView& view, const api::Trial& trial);

// Returns the expectation of every trial, by index. A new model is fitted whenever the facts have
// grown by half, so an expectation may rest on fewer than were known.
std::map<std::int64_t, Expectation> expectations_of(const RunView& view);

// Returns the cost of the trial, in cost_unit; absent without algorithm.costAware.
std::optional<double> recorded_cost(const api::Trial& trial);
const char* cost_unit(const api::StudySpec& spec);

std::string render_reason(const RunView& view, const api::Trial& trial, const Reason& reason);
Json reason_json(const RunView& view, const api::Trial& trial, const Reason& reason);

}  // namespace fettle::cli
