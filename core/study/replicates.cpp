#include "core/study/replicates.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "api/fields/field.h"
#include "core/facts/history.h"
#include "core/names.h"
#include "core/study/best.h"
#include "search/rungs/promotion.h"

namespace fettle::core {
namespace {

// Returns the value if a status may hold it.
std::optional<double> storable(double value) {
  return std::abs(value) <= api::kLargestBound ? std::optional(value) : std::nullopt;
}

// Adds mean and deviation by Welford's recurrence.
void add_moments(const std::vector<double>& values, api::ReplicateResults& results) {
  double mean = 0;
  double squares = 0;  // summed, about the mean
  double count = 0;
  for (const double value : values) {
    count += 1;
    const double off = value - mean;
    mean += off / count;
    squares += off * (value - mean);
  }
  if (count >= 1) results.mean = storable(mean);
  if (count >= 2) results.deviation = storable(std::sqrt(squares / (count - 1)));
}

}  // namespace

std::optional<std::int64_t> repeated_by(const api::Trial& replicate) {
  return trial_index(replicate.spec.study, replicate.spec.search.replicates);
}

void Leaderboard::rank(std::int64_t trial, std::optional<double> loss) {
  const auto known = losses_.find(trial);
  if (known != losses_.end()) {
    ranking_.erase({known->second, trial});
    losses_.erase(known);
  }
  if (!loss) return;
  losses_[trial] = *loss;
  ranking_.insert({*loss, trial});
}

void Leaderboard::count_replicates(std::int64_t trial, std::int64_t number) {
  replicates_[trial] += number;
}

std::vector<std::int64_t> Leaderboard::leaders(std::int64_t most) const {
  std::vector<std::int64_t> out;
  for (const auto& [loss, trial] : ranking_) {
    if (std::ssize(out) >= most) break;
    out.push_back(trial);
  }
  return out;
}

std::int64_t Leaderboard::replicates_of(std::int64_t trial) const {
  const auto found = replicates_.find(trial);
  return found == replicates_.end() ? 0 : found->second;
}

std::optional<std::int64_t> Leaderboard::next(const api::Replicates& wanted) const {
  std::optional<std::int64_t> next;
  std::int64_t fewest = wanted.runs;
  for (const std::int64_t leader : leaders(wanted.leaders)) {
    const std::int64_t has = replicates_of(leader);
    if (has >= fewest) continue;  // best first: of equally few the best stays
    fewest = has;
    next = leader;
  }
  return next;
}

std::int64_t Leaderboard::missing(const api::Replicates& wanted) const {
  std::int64_t missing = 0;
  for (const std::int64_t leader : leaders(wanted.leaders)) {
    missing += std::max<std::int64_t>(0, wanted.runs - replicates_of(leader));
  }
  return missing;
}

search::Stage replicate_stage(const search::Problem& problem) {
  search::Stage stage{.until_step = problem.resource.max, .is_replicate = true};
  // If trials do not pause, ladder_of() has only the last step.
  stage.rung = std::ssize(search::ladder_of(problem)) - 1;
  stage.bracket = stage.rung;
  return stage;
}

EventNote replicating_note(const api::Replicates& wanted) {
  return {EventType::kNormal, "Replicating",
          "the search is over; up to " + std::to_string(wanted.leaders) +
              " of the best configurations are run " + std::to_string(wanted.runs) +
              (wanted.runs == 1 ? " more time" : " more times") + " each, with other seeds"};
}

std::optional<api::ReplicateResults> replicate_results(const api::StudySpec& spec,
                                                       const std::vector<api::TrialPtr>& trials,
                                                       const std::set<std::size_t>& positions) {
  api::ReplicateResults results;
  std::vector<double> values;
  for (const std::size_t position : positions) {
    const api::Fact* end = newest_end(*trials[position]);
    if (end == nullptr || end->kind == api::FactKind::kStopped) continue;
    const bool counts = end->kind == api::FactKind::kResult && is_usable(spec, *end);
    if (counts) {
      values.push_back(*end->values[0]);
    } else {
      ++results.failed;
    }
  }
  results.runs = std::ssize(values);
  if (results.runs + results.failed == 0) return std::nullopt;
  add_moments(values, results);
  return results;
}

}  // namespace fettle::core
