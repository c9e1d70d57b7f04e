#include "search/gp/recommendation.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "search/gp/model.h"
#include "search/gp/targets.h"
#include "search/maths/loss.h"
#include "search/space/space.h"

namespace fettle::search::gp {
namespace {

// Returns the values of feasible results, by trial; a later result replaces an earlier one.
std::map<std::int64_t, double> results_of(const History& history) {
  std::map<std::int64_t, double> out;
  for (const Event& event : history.events) {
    if (event.trial < history.priors || event.fact.kind != api::FactKind::kResult) continue;
    const auto& values = event.fact.values;
    const bool counts = !event.fact.infeasible && values.size() == 1 && values[0].has_value() &&
                        std::isfinite(*values[0]);
    if (counts) out[event.trial] = *values[0];
    if (!counts) out.erase(event.trial);
  }
  return out;
}

Targets targets_of(const Space& space, const Problem& problem, const History& history) {
  Targets out(problem.objectives);
  for (const Json& parameters : history.trials) {
    const std::optional<Point> point = space.read(parameters);
    out.add_trial(point ? &*point : nullptr);
  }
  for (const Event& event : history.events) out.add_event(event);
  return out;
}

}  // namespace

std::optional<Recommendation> recommend(const Problem& problem, const History& history) {
  if (problem.objectives.size() != 1 || api::replaces_trials(problem.algorithm.name)) return {};
  const std::map<std::int64_t, double> results = results_of(history);
  if (std::ssize(results) < kLeastResults) return {};
  const Result<Space> space = Space::make(problem.parameters);
  if (!space.ok()) return {};
  Targets targets = targets_of(*space, problem, history);
  const Axes axes = axes_of(*space);
  Fits fits(*space, axes);
  const Model model(*space, axes, targets, fits.current(targets));
  if (!model.is_noisy()) return {};

  std::optional<std::int64_t> expected_best;
  std::optional<std::int64_t> looks_best;
  const double sign = loss_sign(problem.objectives);
  for (const std::int64_t trial : model.best_trials(kMostModelled)) {
    const auto found = results.find(trial);
    if (found == results.end()) continue;  // stopped early, a prior, or without a feasible result
    if (!expected_best) expected_best = trial;  // the lowest means come first
    if (!looks_best || sign * found->second < sign * results.at(*looks_best)) looks_best = trial;
  }
  if (!expected_best) return {};

  const double deviation = std::sqrt(model.posteriors().front().noise());
  const auto target = [&](std::int64_t trial) { return targets.values({trial})(0, 0); };
  // In the units of `deviation`: targets are warped results, and the process models them.
  const double gap = target(*expected_best) - target(*looks_best);
  // The luckiest of n results is about this much better than the function by noise alone.
  const double luck = deviation * std::sqrt(2 * std::log(static_cast<double>(results.size())));
  const std::int64_t taken = gap < luck ? *expected_best : *looks_best;
  const double mean = model.mean_of(taken);
  const std::optional<double> expected = targets.value_of(mean);
  const std::optional<double> low = targets.value_of(mean - deviation);
  const std::optional<double> high = targets.value_of(mean + deviation);
  if (!expected || !low || !high) return {};
  return Recommendation{taken, *looks_best, results.at(taken), *expected,
                        std::abs(*high - *low) / 2};
}

}  // namespace fettle::search::gp
