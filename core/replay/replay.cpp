#include "core/replay/replay.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "core/facts/history.h"
#include "core/replay/replay_population.h"
#include "core/replay/replay_replicates.h"
#include "core/replay/replay_rungs.h"
#include "core/study/ledger.h"
#include "core/study/problem.h"
#include "search/rungs/promotion.h"
#include "search/study_problem.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::Trial;
using api::TrialPtr;

namespace {

// The history as it grew: trials in the order of creation, each with the facts that its decision
// saw. (Stages are final, but samplers read only the bracket, which never changes.) The failure
// that stands for a deleted trial becomes known with the trial.
class GrowingHistory {
 public:
  explicit GrowingHistory(search::History whole) : whole_(std::move(whole)) {
    // The failures of deleted trials have seq 0 and come first; [begin, deleted_end_) are these.
    const auto recorded = [](const search::Event& event) { return event.fact.seq > 0; };
    next_ = std::ranges::find_if(whole_.events, recorded);
    deleted_end_ = next_;
  }

  // The history just before trial `index` was created on `basis`. Called for rising indices.
  const search::History& before(std::int64_t index, std::int64_t basis) {
    while (std::ssize(known_.trials) < index) {
      const auto trial = std::ssize(known_.trials);
      if (!whole_.stages.empty()) known_.stages.push_back(whole_.stages[known_.trials.size()]);
      known_.trials.push_back(whole_.trials[known_.trials.size()]);
      for (auto event = whole_.events.begin(); event != deleted_end_; ++event) {
        if (event->trial == trial) known_.events.push_back(*event);
      }
    }
    for (; next_ != whole_.events.end() && next_->fact.seq <= basis; ++next_) {
      if (next_->trial >= index) break;  // its trial does not exist yet
      known_.events.push_back(*next_);
    }
    return known_;
  }

 private:
  search::History whole_;
  search::History known_;
  std::vector<search::Event>::const_iterator next_;
  std::vector<search::Event>::const_iterator deleted_end_;
};

// A trial that had ended when its rung became known was not judged.
bool was_judged(const Trial& trial, const Fact& rung) {
  if (trial.spec.stop && trial.spec.stop->basis < rung.seq) return false;
  // Equal times: the planner learnt the end together with the rung.
  return std::ranges::none_of(trial.status.facts, [&rung](const Fact& fact) {
    return fact.kind != FactKind::kRung && fact.at_ms == rung.at_ms && fact.seq > rung.seq;
  });
}

bool stopped_at(const Trial& trial, const Fact& rung) {
  return trial.spec.stop && trial.spec.stop->reason == kEarlyStopped &&
         trial.spec.stop->basis == rung.seq;
}

// Whether two documents agree, numbers within kCrossMachineTolerance.
bool is_close(const Json& recorded, const Json& again) {
  if (recorded == again) return true;
  if (recorded.is_number() && again.is_number()) {
    const double a = recorded.as_double();
    const double b = again.as_double();
    return std::abs(a - b) <= kCrossMachineTolerance * std::max(std::abs(a), std::abs(b));
  }
  if (!recorded.is_object() || !again.is_object()) return false;
  if (recorded.as_object().size() != again.as_object().size()) return false;
  return std::ranges::all_of(recorded.as_object(), [&](const auto& member) {
    const Json* other = again.find(member.first);
    return other != nullptr && is_close(member.second, *other);
  });
}

// Counts the suggestion, and notes how it differs from the record. A rounding difference is ignored
// if another machine computed the record.
void compare_suggestion(const api::Study& study, const ReplayedSuggestion& again,
                        const std::string& computed_by, Replay& out) {
  ++out.suggestions;
  const Trial& trial = *again.trial;
  if (again.point && *again.point == trial.spec.parameters) return;
  const api::SearchPeriod* period =
      search::period_at(study.status.search, trial.spec.index, trial.spec.search.basis);
  // Without a period the machine is not known, and the record has to agree to the bit.
  const bool elsewhere = period != nullptr && period->computed_by != computed_by;
  if (elsewhere && again.point && is_close(trial.spec.parameters, *again.point)) {
    ++out.close;
    return;
  }
  out.differences.push_back({trial.metadata.name, trial.spec.search.basis,
                             trial.spec.parameters.dump(),
                             again.point ? again.point->dump() : "no point is left"});
}

// The sampler of each period in turn, and of the prior observations that were known. A new one may
// begin anywhere, because a sampler reads the whole history that it is given.
class Samplers {
 public:
  explicit Samplers(const api::Study& study) : study_(study) {}

  Result<search::Sampler*> at(std::int64_t index, std::int64_t basis, std::size_t priors) {
    const api::SearchPeriod* period = search::period_at(study_.status.search, index, basis);
    if (sampler_ == nullptr || period != period_ || priors != priors_) {
      search::Problem problem = problem_at(study_, index, basis);
      problem.priors.resize(std::min(priors, problem.priors.size()));
      FETTLE_ASSIGN(sampler_, search::make_sampler(problem));
      period_ = period;
      priors_ = priors;
    }
    return sampler_.get();
  }

 private:
  const api::Study& study_;
  std::unique_ptr<search::Sampler> sampler_;
  const api::SearchPeriod* period_ = nullptr;
  std::size_t priors_ = 0;  // known to sampler_
};

constexpr std::size_t kAllPriors = api::kMaxPriorObservations;

// How many prior observations were known when the trial was chosen.
std::size_t priors_of(const Trial& trial) {
  const auto label = trial.metadata.labels.find(kPriorsLabel);
  if (label == trial.metadata.labels.end()) return kAllPriors;
  std::size_t count = kAllPriors;
  const std::string& text = label->second;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

std::string words(const search::Judgement& judgement) {
  const bool stop = judgement.verdict == search::Verdict::kStop;
  return (stop ? "stop: " : "continue: ") + judgement.reason;
}

// Judges each recorded rung again. A stop must be recorded with the same words; for a trial that
// continued none were recorded.
void replay_judgements(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out) {
  const search::Problem problem = problem_of(study);
  if (!problem.early_stopping || search::promotes(problem)) return;
  const search::History whole = history_of(study, trials);
  for (const TrialPtr& trial : trials) {
    for (const Fact& fact : trial->status.facts) {
      if (fact.kind != FactKind::kRung || !was_judged(*trial, fact)) continue;
      const search::Judgement again = search::judge(
          problem, *problem.early_stopping, history_at(whole, trials, fact.seq), trial->spec.index);
      const bool stopped = stopped_at(*trial, fact);
      ++out.judgements;
      if (stopped) ++out.stops;
      const bool stop_again = again.verdict == search::Verdict::kStop;
      if (stop_again == stopped && (!stopped || trial->spec.stop->message == again.reason))
        continue;
      out.differences.push_back({trial->metadata.name, fact.seq,
                                 stopped ? "stop: " + trial->spec.stop->message : "continue",
                                 words(again)});
    }
  }
}

}  // namespace

bool is_prescribed(const api::Trial& trial) {
  return trial.metadata.labels.contains(kPrescribedLabel);
}

search::History history_before(const api::Study& study, const std::vector<TrialPtr>& trials,
                               std::int64_t index) {
  GrowingHistory growing(history_of(study, trials));
  const search::History* known = nullptr;
  for (const TrialPtr& trial : trials) {
    if (trial->spec.index > index) break;
    known = &growing.before(trial->spec.index, trial->spec.search.basis);
  }
  return known == nullptr ? search::History{} : *known;
}

search::History history_at(const search::History& whole, const std::vector<TrialPtr>& trials,
                           std::int64_t seq) {
  search::History known;  // without stages: judge(), for which this is, reads no stage
  std::size_t count = 0;
  // A trial that was created on this fact, or a later one, came after its judgement.
  for (const TrialPtr& trial : trials) {
    if (trial->spec.search.basis < seq) count = static_cast<std::size_t>(trial->spec.index) + 1;
  }
  known.trials.assign(whole.trials.begin(),
                      whole.trials.begin() + static_cast<std::ptrdiff_t>(count));
  for (const search::Event& event : whole.events) {
    if (event.fact.seq > seq) break;
    known.events.push_back(event);
  }
  return known;
}

Result<std::vector<ReplayedSuggestion>> replay_suggestions(const api::Study& study,
                                                           const std::vector<TrialPtr>& trials) {
  Samplers samplers(study);
  FETTLE_TRY(
      samplers.at(0, 0, kAllPriors));  // so that wrong rules are an error even without a trial
  GrowingHistory growing(history_of(study, trials));
  std::vector<ReplayedSuggestion> out;
  for (const TrialPtr& trial : trials) {
    if (trial->spec.parent) continue;    // replay_population.h
    if (is_replicate(*trial)) continue;  // replay_replicates.h
    if (is_prescribed(*trial)) continue;
    const std::int64_t basis = trial->spec.search.basis;
    FETTLE_ASSIGN(search::Sampler* const sampler,
                  samplers.at(trial->spec.index, basis, priors_of(*trial)));
    search::Suggestion suggestion = sampler->suggest(growing.before(trial->spec.index, basis), 1);
    ReplayedSuggestion again{trial.get(), std::nullopt};
    if (!suggestion.points.empty()) again.point = std::move(suggestion.points.front());
    out.push_back(std::move(again));
  }
  return out;
}

Result<Replay> replay(const api::Study& study, const std::vector<TrialPtr>& trials,
                      const std::string& computed_by) {
  FETTLE_ASSIGN(const std::vector<ReplayedSuggestion> suggestions,
                replay_suggestions(study, trials));
  Replay out;
  for (const ReplayedSuggestion& again : suggestions) {
    compare_suggestion(study, again, computed_by, out);
  }
  for (const api::SearchPeriod& period : study.status.search) {
    const bool is_new = out.elsewhere.empty() || out.elsewhere.back() != period.computed_by;
    if (period.computed_by != computed_by && is_new) out.elsewhere.push_back(period.computed_by);
  }
  out.deleted = next_index(trials, study.status.trials.created) - std::ssize(trials);
  replay_judgements(study, trials, out);
  replay_promotions(study, trials, out);
  replay_population(study, trials, out);
  replay_replicates(study, trials, out);
  std::ranges::stable_sort(out.differences, {}, &Difference::basis);
  return out;
}

}  // namespace fettle::core
