#include "search/warm_start.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "api/study/algorithm.h"
#include "search/space/space_map.h"
#include "search/transfer.h"

namespace fettle::search {
namespace {

constexpr std::size_t kBestTried = 3;  // best priors that are tried first
// Separates the draws of omitted parameters from all other draws of the same seed.
constexpr std::uint64_t kFillPurpose = 0x7761726D;  // "warm"

class WarmStart final : public Sampler {
 public:
  WarmStart(const Problem& problem, Space space, std::vector<Json> first,
            std::vector<Transfer::Observation> priors, std::unique_ptr<Sampler> sampler)
      : space_(std::move(space)),
        first_(std::move(first)),
        transfer_(space_, problem.objectives, std::move(priors)),
        last_step_(problem.resource.max),
        sampler_(std::move(sampler)),
        tried_(first_.size(), false) {
    put_priors_in_front();
  }

  Suggestion suggest(const History& history, std::int64_t n) override {
    catch_up(history);
    Suggestion out;
    for (std::size_t i = 0; i < first_.size(); ++i) {
      if (static_cast<std::int64_t>(out.points.size()) == n) return out;
      if (!tried_[i]) out.points.push_back(first_[i]);
    }
    // For this call the inner sampler sees the points to try first as pending trials; if trials
    // pause, each of them needs a stage, too.
    const std::size_t before = known_.trials.size();
    known_.trials.insert(known_.trials.end(), out.points.begin(), out.points.end());
    add_stages(history);
    const auto rest = n - static_cast<std::int64_t>(out.points.size());
    Suggestion more = sampler_->suggest(known_, rest);
    std::move(more.points.begin(), more.points.end(), std::back_inserter(out.points));
    out.exhausted = more.exhausted;
    if (before < known_.trials.size()) {
      known_.trials.resize(before);  // the caller may or may not create them
      add_stages(history);
      // A history that got shorter makes the inner sampler forget them, too (search.h).
      sampler_->suggest(known_, 0);
    }
    return out;
  }

  std::optional<Explanation> explain(const History& history, const Json& point) override {
    catch_up(history);
    const auto first = std::find(first_.begin(), first_.end(), point);
    const bool next = first != first_.end() && !tried_[index_of(first)];
    add_stages(history);
    if (!next) return sampler_->explain(known_, point);
    return Explanation{.words = "one of the points to try first"};
  }

  std::string description() const override {
    std::string out = sampler_->description() + ", after " + std::to_string(first_.size()) +
                      (first_.size() == 1 ? " point" : " points") + " to try first";
    const std::size_t count = transfer_.priors().size();
    if (count > 0) out += ", with " + std::to_string(count) + " results of earlier Studies";
    return out;
  }

 private:
  std::size_t index_of(std::vector<Json>::const_iterator first) const {
    return static_cast<std::size_t>(first - first_.begin());
  }

  // Resets known_ to the priors in force, as trials that ended before this Study began.
  void put_priors_in_front() {
    known_ = {};
    const std::vector<double>& shifts = transfer_.shifts();
    for (const std::size_t i : transfer_.in_force()) {
      const Transfer::Observation& prior = transfer_.priors()[i];
      Event event;
      event.trial = known_.priors++;
      event.fact.kind = api::FactKind::kResult;
      // As of a trial that ran to its end.
      event.fact.step = last_step_;
      for (std::size_t o = 0; o < shifts.size(); ++o) {
        event.fact.values.emplace_back(prior.values[o] + shifts[o]);
      }
      known_.trials.push_back(space_.write(prior.point));
      known_.events.push_back(std::move(event));
    }
    // The inner sampler's own choices come after the priors and the points to try first. The points
    // to try first come with the history (catch_up).
    known_.unnumbered = known_.priors + static_cast<std::int64_t>(first_.size());
    // catch_up() adds this Study's trials and events again, behind the priors.
    trials_ = 0;
    events_ = 0;
  }

  void catch_up(const History& history) {
    if (history.trials.size() < trials_ || history.events.size() < events_) {
      transfer_.clear();
      compared_ = 0;
      tried_.assign(tried_.size(), false);
      begin_again();
    }
    bool changed = false;
    for (; compared_ < history.events.size(); ++compared_) {
      // In this order, so that compare() sees every event.
      changed = compare(history, history.events[compared_]) || changed;
    }
    if (changed) begin_again();
    for (; trials_ < history.trials.size(); ++trials_) {
      known_.trials.push_back(history.trials[trials_]);
      const auto first = std::find(first_.begin(), first_.end(), history.trials[trials_]);
      if (first != first_.end()) tried_[index_of(first)] = true;
    }
    for (; events_ < history.events.size(); ++events_) {
      known_.events.push_back(history.events[events_]);
      known_.events.back().trial += known_.priors;  // priors come before this Study's trials
    }
  }

  // If trials pause, sets the stages of known_: ended stages for the priors, then the stages of the
  // history.
  void add_stages(const History& history) {
    if (history.stages.empty()) return;
    known_.stages.assign(static_cast<std::size_t>(known_.priors), Stage{.ended = true});
    known_.stages.insert(known_.stages.end(), history.stages.begin(), history.stages.end());
    known_.stages.resize(known_.trials.size());
  }

  void begin_again() {
    put_priors_in_front();
    sampler_->suggest({}, 0);  // makes it forget its state
  }

  // Passes a result of this Study to transfer_; returns whether the priors were weighed anew.
  bool compare(const History& history, const Event& event) {
    if (event.fact.kind != api::FactKind::kResult || event.fact.infeasible) return false;
    auto point = space_.read(history.trials[static_cast<std::size_t>(event.trial)]);
    if (!point || event.fact.values.size() < transfer_.shifts().size()) return false;
    std::vector<double> values;
    for (const std::optional<double>& value : event.fact.values) {
      if (!value || !std::isfinite(*value)) return false;
      values.push_back(*value);
    }
    return transfer_.add({*std::move(point), std::move(values)});
  }

  const Space space_;
  const std::vector<Json> first_;
  Transfer transfer_;
  const std::int64_t last_step_;
  std::unique_ptr<Sampler> sampler_;
  History known_;           // the history that the inner sampler sees
  std::size_t trials_ = 0;  // trials of the history that are in known_
  std::size_t events_ = 0;
  std::size_t compared_ = 0;  // events passed to compare()
  std::vector<bool> tried_;   // which of first_ were tried
};

// Whether the prior has one finite value per objective.
bool is_usable(const Problem& problem, const api::PriorObservation& prior) {
  return prior.values.size() == problem.objectives.size() &&
         std::all_of(prior.values.begin(), prior.values.end(),
                     [](double value) { return std::isfinite(value); });
}

// A trial that ends at a rung has no result, and ranks behind all that have one (ranking.h). Priors
// are results: even a poor prior would rank before it, though it might have lost at that rung.
bool learns_from_priors(const Problem& problem) {
  if (!api::traits(problem.algorithm.name).uses_priors) return false;
  const std::optional<api::EarlyStopping>& rule = problem.early_stopping;
  const bool has_rungs = rule && api::traits(rule->name).has_rungs &&
                         !rung_steps(problem.algorithm, rule, problem.resource).empty();
  return !has_rungs || problem.revision < 3;  // docs/decisions/0008
}

void add_distinct(std::vector<Json>& points, Json point) {
  if (std::find(points.begin(), points.end(), point) == points.end()) {
    points.push_back(std::move(point));
  }
}

}  // namespace

bool starts_warm(const Problem& problem) {
  return !problem.first_points.empty() || !problem.priors.empty();
}

Result<std::unique_ptr<Sampler>> make_warm_start(const Problem& problem,
                                                 std::unique_ptr<Sampler> sampler) {
  FETTLE_ASSIGN(const SpaceMap map, SpaceMap::make(problem.parameters, /*names=*/{}));
  FETTLE_ASSIGN(Space space, Space::make(problem.parameters));
  std::vector<Json> first;
  const std::uint64_t key =
      mix_keys(static_cast<std::uint64_t>(problem.algorithm.seed), kFillPurpose);
  for (std::size_t i = 0; i < problem.first_points.size(); ++i) {
    Random random(key, i);
    std::optional<Json> point = map.image(problem.first_points[i], random);
    if (!point) {
      return invalid("the point to try first " + problem.first_points[i].dump() +
                     " is not of this space; correct its values, or leave them out");
    }
    add_distinct(first, *std::move(point));
  }
  std::vector<Transfer::Observation> priors;
  for (const api::PriorObservation& prior : problem.priors) {
    std::optional<Point> point = space.read(prior.parameters);
    if (point && is_usable(problem, prior)) priors.push_back({*std::move(point), prior.values});
  }
  const Transfer ranked(space, problem.objectives, priors);
  for (std::size_t k = 0; k < std::min(kBestTried, priors.size()); ++k) {
    add_distinct(first, space.write(priors[ranked.best_first()[k]].point));
  }
  // A sampler that does not learn from priors still tries the best few of them first.
  if (!learns_from_priors(problem)) priors.clear();
  return std::unique_ptr<Sampler>(std::make_unique<WarmStart>(
      problem, std::move(space), std::move(first), std::move(priors), std::move(sampler)));
}

}  // namespace fettle::search
