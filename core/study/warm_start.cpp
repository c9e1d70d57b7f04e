#include "core/study/warm_start.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/study/known_result.h"
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
    Counts counts;
    for (const api::TrialPtr& trial : earlier.trials) {
      if (is_replicate(*trial)) continue;  // the same point again
      const Fact* result = newest_fact(*trial, FactKind::kResult);
      auto values = values_of(result, *objectives);
      if (!values) continue;  // no result, an infeasible one, or one without all objectives
      add_point(trial->metadata.name, trial->spec.parameters, *std::move(values), result->at_ms,
                counts);
    }
    add_found(earlier.name, counts);
  }

  // Takes the results from elsewhere, which count as older than all results of Studies.
  void add_known(const api::WarmStart& warm) {
    const std::string source = warm.results.empty() ? "known results" : warm.results;
    if (warm.known.empty() && !warm.results.empty()) {
      return complain(
          source, "a cluster does not read files; apply the Study with fettle run --on cluster");
    }
    Counts counts;
    for (const Json& item : warm.known) {
      const auto known = api::read_known_result(item);
      if (known.ok()) add_known(*known, counts);  // a document of an API server was checked
    }
    if (!warm.known.empty()) add_found(source, counts);
  }

  // The best half of `most` and the newest of the others, in the order in which they were learnt.
  std::vector<PriorObservation> newest_and_best(std::size_t most) const {
    std::vector<std::vector<double>> values;
    for (const Candidate& one : candidates_) values.push_back(one.observation.values);
    std::vector<PriorObservation> out;
    // sort() has put the newest last.
    for (const std::size_t i : best_and_last(study_.spec.objectives, values, most)) {
      out.push_back(candidates_[i].observation);
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

  struct Counts {
    std::int64_t taken = 0;
    std::int64_t outside = 0;     // of this space
    std::int64_t unfinished = 0;  // stopped before resource.max
    std::int64_t unmeasured = 0;  // without a value of each objective, or infeasible
  };

  // Maps the point into this space, and keeps it if it has an image there.
  void add_point(const std::string& name, const Json& parameters, std::vector<double> values,
                 std::int64_t at_ms, Counts& counts) {
    Random random(key_, draws_++);  // fills parameters that were not varied there
    auto point = map_.image(parameters, random);
    ++(point ? counts.taken : counts.outside);
    if (!point) return;
    candidates_.push_back({{name, *std::move(point), std::move(values)}, at_ms});
  }

  void add_known(const api::KnownResult& known, Counts& counts) {
    const api::StudySpec& spec = study_.spec;
    if (known.stopped || (counts_steps(spec) && known.step && *known.step < spec.resource.max)) {
      ++counts.unfinished;
      return;
    }
    std::vector<double> values;
    for (const api::Objective& objective : spec.objectives) {
      const auto found = known.values.find(objective.metric);
      if (found != known.values.end()) values.push_back(found->second);
    }
    if (values.size() < spec.objectives.size() || violates(known)) {
      ++counts.unmeasured;
      return;
    }
    add_point(known.name, known.parameters, std::move(values), 0, counts);
  }

  // Metrics that the result does not have violate nothing.
  bool violates(const api::KnownResult& known) const {
    return std::ranges::any_of(study_.spec.constraints, [&](const api::Constraint& constraint) {
      const auto found = known.values.find(constraint.metric);
      return found != known.values.end() && (found->second < constraint.min.value_or(-INFINITY) ||
                                             found->second > constraint.max.value_or(INFINITY));
    });
  }

  void add_found(const std::string& source, const Counts& counts) {
    const std::int64_t all = counts.taken + counts.outside + counts.unfinished + counts.unmeasured;
    std::string words = std::to_string(counts.taken) + " of " + source;
    const char* open = " (";
    const auto add = [&](std::int64_t count, const std::string& why) {
      if (count == 0) return;
      words += open + std::to_string(count) + why;
      open = ", ";
    };
    add(counts.outside, " more lie outside this space");
    add(counts.unfinished, " ended before " + study_.spec.resource.unit + ' ' +
                               std::to_string(study_.spec.resource.max));
    add(counts.unmeasured, " have no feasible value of each objective");
    if (counts.taken < all) words += ')';
    found_ += (found_.empty() ? "" : ", ") + words;
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

std::vector<std::size_t> best_and_last(const std::vector<api::Objective>& objectives,
                                       const std::vector<std::vector<double>>& values,
                                       std::size_t most) {
  std::vector<bool> chosen(values.size(), values.size() <= most);
  if (values.size() > most) {
    search::Ranking ranking(objectives);
    for (std::size_t i = 0; i < values.size(); ++i) {
      Fact fact;
      for (const double value : values[i]) fact.values.emplace_back(value);
      ranking.add(static_cast<std::int64_t>(i), fact);
    }
    const std::vector<std::int64_t> best = ranking.order();
    for (std::size_t i = 0; i < most / 2; ++i) chosen[static_cast<std::size_t>(best[i])] = true;
    std::size_t left = most - most / 2;
    for (std::size_t i = values.size(); i-- > 0 && left > 0;) {
      if (chosen[i]) continue;
      chosen[i] = true;
      --left;
    }
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) out.push_back(i);
  }
  return out;
}

bool needs_priors(const api::Study& study, const std::vector<api::TrialPtr>& trials) {
  const auto& warm = study.spec.warm_start;
  if (!warm || study.spec.suspend) return false;
  if (warm->studies.empty() && warm->known.empty() && warm->results.empty()) return false;
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
    collection.add_known(*study.spec.warm_start);
    collection.sort();
    status.prior_observations = within_limits(collection);
    complaints = collection.complaints();
    if (collection.size() > 0) found = "begins with results of trials: " + collection.found();
    if (collection.size() > status.prior_observations.size()) {
      found += "; the best and the newest " + std::to_string(status.prior_observations.size()) +
               " are kept";
    }
    if (collection.size() == 0 && complaints.empty())
      complaints = "no trial has a usable result" +
                   (collection.found().empty() ? "" : ": " + collection.found());
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
