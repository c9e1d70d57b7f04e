// Reason: why a trial was tried: what was known when its point was chosen, what was expected of it,
// and its result. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cli/views/view.h"
#include "explain/model.h"
#include "search/search.h"

namespace fettle::cli {

// What a forest over the results so far predicts at the point (explain/model.h).
struct Expectation {
  double mean = 0;  // of the first objective
  double deviation = 0;
  double beats = 0;        // share of random points that are expected to be worse
  std::size_t trials = 0;  // that the forest learnt from
};

// When the point was chosen.
struct KnownBefore {
  std::int64_t trials = 0;
  std::int64_t ended = 0;      // of them
  std::optional<double> best;  // of the first objective, among final results
};

// How the trial's final first objective compares with all results there are now.
struct Ranking {
  double value = 0;
  std::int64_t rank = 0;  // 1 = the best
  std::int64_t of = 0;    // results
};

struct Reason {
  std::string sampler;  // description
  KnownBefore before;
  std::optional<search::Explanation> explanation;  // the sampler's own
  std::optional<Expectation> expectation;          // nothing: too few trials had ended
  std::optional<Ranking> ranking;                  // nothing: no feasible result
};

// `trial` is one of view.trials. Errors: those of make_sampler.
Result<Reason> reason_of(const RunView& view, const api::Trial& trial);

// What was expected of every trial, by index. A new model is fitted when there are half as many
// facts again, so an expectation may rest on fewer than were known.
std::map<std::int64_t, Expectation> expectations_of(const RunView& view);

// The cost of the trial, in units of cost_unit; nothing without algorithm.costAware.
std::optional<double> recorded_cost(const api::Trial& trial);
const char* cost_unit(const api::StudySpec& spec);

std::string render_reason(const RunView& view, const api::Trial& trial, const Reason& reason);
Json reason_json(const RunView& view, const api::Trial& trial, const Reason& reason);

}  // namespace fettle::cli
