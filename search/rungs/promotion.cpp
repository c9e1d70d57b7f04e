#include "search/rungs/promotion.h"

#include "base/check.h"
#include "search/rungs/halving.h"
#include "search/rungs/population.h"
#include "search/rungs/rung_table.h"

namespace fettle::search {
namespace {

bool is_population(const Problem& problem) { return api::replaces_trials(problem.algorithm.name); }

RungTable table_of(const Problem& problem, const History& history) {
  CHECK(history.stages.size() == history.trials.size(), "each trial has a stage");
  return {problem, history, ladder_of(problem)};
}

}  // namespace

bool promotes(const Problem& problem) {
  return is_population(problem) ? population_pauses(problem) : halves(problem);
}

std::vector<std::int64_t> ladder_of(const Problem& problem) {
  if (is_population(problem)) return population_ladder(problem);
  return halves(problem) ? halving_ladder(problem) : std::vector{problem.resource.max};
}

std::vector<Stage> first_stages(const Problem& problem, const History& history, std::size_t n) {
  if (is_population(problem)) return first_members(problem, history, n);
  return halving_stages(problem, table_of(problem, history), history, n);
}

std::optional<Promotion> next_promotion(const Problem& problem, const History& history, bool last) {
  if (is_population(problem)) return next_to_resume(problem, history, last);
  return next_halving(problem, table_of(problem, history), history, last);
}

bool is_probing(const Problem& problem, const History& history) {
  return !is_population(problem) && is_probing(table_of(problem, history), history);
}

std::vector<std::int64_t> silent_for_good(const Problem& problem, const History& history) {
  if (is_population(problem)) return {};
  return silent_for_good(table_of(problem, history), history);
}

bool any_runs(const Problem& problem, const History& history) {
  return table_of(problem, history).any_runs(history.stages);
}

}  // namespace fettle::search
