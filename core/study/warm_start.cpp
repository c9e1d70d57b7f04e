#include "core/study/warm_start.h"

#include <algorithm>
#include <utility>

#include "base/philox.h"
#include "core/conditions.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"
#include "core/study/study_status.h"
#include "search/maths/ranking.h"
#include "search/space/space_map.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::PriorObservation;

namespace {

constexpr const char* kCondition = "WarmStarted";
// Keeps the draws of parameters that an earlier Study did not have apart from all others.
constexpr std::uint64_t kFillPurpose = 0x7072696F72;  // "prior"

struct Candidate {
  PriorObservation observation;
  std::int64_t at_ms = 0;  // when its result was learnt
};

// The position of each wanted objective in the earlier Study. The error names the missing one.
Result<std::vector<std::size_t>> objectives_in(const api::Study& earlier,
                                               const std::vector<api::Objective>& wanted) {
  std::vector<std::size_t> out;
  const std::vector<api::Objective>& there = earlier.spec.objectives;
  for (const api::Objective& objective : wanted) {
    const auto found = std::ranges::find(there, objective.metric, &api::Objective::metric);
    if (found == there.end()) return not_found("it has no objective " + objective.metric);
    if (found->direction != objective.direction) {
      return not_found("there " + objective.metric + " goes in the other direction");
    }
    out.push_back(static_cast<std::size_t>(found - there.begin()));
  }
  return out;
}

// The values of a feasible result; absent if the trial has none.
std::optional<std::vector<double>> values_of(const Fact* result,
                                             const std::vector<std::size_t>& objectives) {
  if (result == nullptr || result->infeasible) return std::nullopt;
  std::vector<double> out;
  for (const std::size_t i : objectives) {
    if (i >= result->values.size() || !result->values[i]) return std::nullopt;
    out.push_back(*result->values[i]);
  }
  return out;
}

// Collects the results of one Study after another.
class Collection {
 public:
  Collection(const api::Study& study, search::SpaceMap map)
      : study_(study),
        map_(std::move(map)),
        key_(mix_keys(static_cast<std::uint64_t>(study.spec.algorithm.seed), kFillPurpose)) {}

  // Takes the feasible results that lie in the new space; found() also counts the others.
  void add(const EarlierStudy& earlier) {
    if (!earlier.study) return complain(earlier.name, earlier.problem);
    const auto objectives = objectives_in(*earlier.study, study_.spec.objectives);
    if (!objectives.ok()) return complain(earlier.name, objectives.error().message);
    std::int64_t taken = 0;
    std::int64_t outside = 0;
    for (const api::TrialPtr& trial : earlier.trials) {
      if (is_replicate(*trial)) continue;  // the same point again
      const Fact* result = newest_fact(*trial, FactKind::kResult);
      auto values = values_of(result, *objectives);
      if (!values) continue;          // no result, an infeasible one, or one without all objectives
      Random random(key_, draws_++);  // fills parameters that the earlier Study did not have
      auto point = map_.image(trial->spec.parameters, random);
      ++(point ? taken : outside);
      if (!point) continue;
      candidates_.push_back(
          {{trial->metadata.name, *std::move(point), *std::move(values)}, result->at_ms});
    }
    std::string words = std::to_string(taken) + " of " + earlier.name;
    if (outside > 0) words += " (" + std::to_string(outside) + " more lie outside this space)";
    found_ += (found_.empty() ? "" : ", ") + words;
  }

  // The best half of `most` and the newest of the others, in the order in which they were learnt.
  std::vector<PriorObservation> newest_and_best(std::size_t most) const {
    std::vector<bool> chosen(candidates_.size(), candidates_.size() <= most);
    if (candidates_.size() > most) {
      const std::vector<std::size_t> best = best_first();
      for (std::size_t i = 0; i < most / 2; ++i) chosen[best[i]] = true;
      std::size_t left = most - most / 2;
      // From the end: sort() has put the newest there.
      for (std::size_t i = candidates_.size(); i-- > 0 && left > 0;) {
        if (chosen[i]) continue;
        chosen[i] = true;
        --left;
      }
    }
    std::vector<PriorObservation> out;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i]) out.push_back(candidates_[i].observation);
    }
    return out;
  }

  // By the time at which the results were recorded.
  void sort() { std::ranges::stable_sort(candidates_, {}, &Candidate::at_ms); }

  const std::string& found() const { return found_; }
  const std::string& complaints() const { return complaints_; }
  std::size_t size() const { return candidates_.size(); }

 private:
  void complain(const std::string& name, const std::string& why) {
    complaints_ += (complaints_.empty() ? "" : "; ") + std::string("nothing is learnt from ") +
                   name + ": " + why;
  }

  std::vector<std::size_t> best_first() const {
    search::Ranking ranking(study_.spec.objectives);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Fact fact;
      for (const double value : candidates_[i].observation.values) fact.values.emplace_back(value);
      ranking.add(static_cast<std::int64_t>(i), fact);
    }
    std::vector<std::size_t> out;
    for (const std::int64_t i : ranking.order()) out.push_back(static_cast<std::size_t>(i));
    return out;
  }

  const api::Study& study_;
  const search::SpaceMap map_;
  const std::uint64_t key_;
  std::uint64_t draws_ = 0;
  std::vector<Candidate> candidates_;
  std::string found_;
  std::string complaints_;
};

// Halves the number of observations, down to two, until they fit into a status.
std::vector<PriorObservation> within_limits(const Collection& collection) {
  std::size_t most = api::kMaxPriorObservations;
  for (;;) {
    std::vector<PriorObservation> out = collection.newest_and_best(most);
    std::size_t bytes = 0;
    for (const PriorObservation& one : out) bytes += one.parameters.dump().size();
    if (bytes <= kMaxPriorBytes || most <= 2) return out;
    most /= 2;
  }
}

}  // namespace

bool needs_priors(const api::Study& study, const std::vector<api::TrialPtr>& trials) {
  const auto& warm = study.spec.warm_start;
  if (!warm || warm->studies.empty() || study.spec.suspend) return false;
  if (study.metadata.deleted_ms != 0 || is_finished(study.status)) return false;
  return next_index(trials, study.status.trials.created) == 0 &&
         find_condition(study.status.conditions, kCondition) == nullptr;
}

StudyPlan plan_warm_start(const api::Study& study, const std::vector<EarlierStudy>& earlier,
                          std::int64_t now_ms) {
  api::StudyStatus status = study.status;
  std::string found;
  std::string complaints;
  auto map = search::SpaceMap::make(study.spec.parameters, study.spec.warm_start->map);
  if (map.ok()) {
    Collection collection(study, *std::move(map));
    for (const EarlierStudy& one : earlier) collection.add(one);
    collection.sort();
    status.prior_observations = within_limits(collection);
    complaints = collection.complaints();
    if (collection.size() > 0) found = "begins with results of trials: " + collection.found();
    if (collection.size() > status.prior_observations.size()) {
      found += "; the best and the newest " + std::to_string(status.prior_observations.size()) +
               " are kept";
    }
    if (collection.size() == 0 && complaints.empty()) complaints = "no trial has a usable result";
  } else {
    complaints = map.error().message;
  }
  const bool warm = !status.prior_observations.empty();
  const std::string message =
      found + (found.empty() || complaints.empty() ? "" : "; ") + complaints;
  // Stored even if it is false, which set_condition() would leave out: needs_priors() looks for it.
  status.conditions.push_back(
      {kCondition, warm, warm ? "Learnt" : "NothingLearnt", truncate_message(message), now_ms});
  StudyPlan plan;
  plan.actions.emplace_back(UpdateStudyStatus{std::move(status)});
  plan.actions.emplace_back(Note{{complaints.empty() ? EventType::kNormal : EventType::kWarning,
                                  warm ? "WarmStarted" : "NotWarmStarted", message}});
  return plan;
}

}  // namespace fettle::core
