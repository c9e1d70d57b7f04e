#include "core/study/ledger.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "core/facts/history.h"
#include "core/names.h"
#include "core/study/problem.h"
#include "search/rungs/promotion.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::Trial;
using api::TrialPhase;
using api::TrialPtr;

namespace {

// Facts have equal seq only if two controllers wrote at once; the trial then decides the order.
bool comes_before(const search::Event& a, const search::Event& b) {
  return std::tie(a.fact.seq, a.trial) < std::tie(b.fact.seq, b.trial);
}

void set_member(std::set<std::size_t>& positions, std::size_t position, bool is_member) {
  if (is_member) {
    positions.insert(position);
  } else {
    positions.erase(position);
  }
}

// Whether the trial paused at a rung, promoted since or not.
bool has_paused(const api::StudySpec& spec, const Trial& trial) {
  return trial.status.phase == TrialPhase::kCompleted &&
         trial.spec.until_step < spec.resource.max &&
         newest_fact(trial, FactKind::kResult) == nullptr;
}

bool is_infeasible(const api::StudySpec& spec, const Trial& trial) {
  if (trial.status.phase != TrialPhase::kCompleted || has_paused(spec, trial)) return false;
  const Fact* result = newest_fact(trial, FactKind::kResult);
  return result != nullptr && result->infeasible;
}

// The count that the trial belongs to.
std::int64_t& counter_of(const api::StudySpec& spec, const Trial& trial, api::TrialCounts& counts) {
  switch (trial.status.phase) {
    case TrialPhase::kPending:
    case TrialPhase::kPaused:
      return counts.pending;
    case TrialPhase::kRunning:
      return counts.running;
    case TrialPhase::kStopped:
      return counts.stopped;
    case TrialPhase::kFailed:
      return counts.failed;
    case TrialPhase::kCompleted:
      break;
  }
  if (!has_paused(spec, trial)) return counts.completed;
  // Until it is promoted, a paused trial counts as stopped: it may never continue.
  return is_active(trial) ? counts.pending : counts.stopped;
}

// Whether `facts` begin with all of `known`.
bool is_prefix(const std::vector<Fact>& known, const std::vector<Fact>& facts) {
  return known.size() <= facts.size() && std::equal(known.begin(), known.end(), facts.begin());
}

// Whether the trial may have a rung that was not judged. A stop that was planned but not written is
// gone from `after`, and has to be decided again.
bool may_need_judging(const Trial* before, const Trial& after) {
  return before == nullptr || before->status.facts != after.status.facts ||
         (before->spec.stop && !after.spec.stop);
}

}  // namespace

// ---- Following the trials ----------------------------------------------------------------------

StudyVersion version_of(const api::Study& study) {
  return {study.metadata.name, study.metadata.uid, study.metadata.generation, study.status.search,
          study.status.prior_observations.size()};
}

void Ledger::reset(const api::Study& study) {
  // Counts on: a sampler that was made before must not seem to fit the new history.
  const std::int64_t rebuilds = rebuilds_;
  *this = Ledger();
  rebuilds_ = rebuilds;
  version_ = version_of(study);
  spec_ = study.spec;
  problem_ = problem_of(study);
  rungs_ = search::rung_steps(problem_.algorithm, problem_.early_stopping, problem_.resource);
  has_stages_ = search::promotes(problem_);
  history_is_stale_ = true;
}

void Ledger::update(const api::Study& study, const std::vector<TrialPtr>& trials) {
  // Whether a trial was deleted, or inserted between known trials: positions are no longer the
  // same.
  const auto differs_in_order = [&] {
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      if (trials_[i] != trials[i] && trials_[i]->spec.index != trials[i]->spec.index) return true;
    }
    return false;
  };
  // In this order: differs_in_order() needs at least as many trials as are known.
  if (version_ != version_of(study) || trials.size() < trials_.size() || differs_in_order())
    reset(study);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (i == trials_.size()) trials_.emplace_back();
    if (trials_[i] != trials[i]) put(i, trials[i]);
  }
  flush(study.status.trials.created);
}

void Ledger::replace(std::size_t position, TrialPtr trial) {
  put(position, std::move(trial));
  flush(next_index());
}

void Ledger::append(TrialPtr trial) {
  trials_.emplace_back();
  put(trials_.size() - 1, std::move(trial));
  flush(next_index());
}

// Replaces the trial at `position`, if there is one, by `trial` in all aggregates. The caller must
// flush() afterwards.
void Ledger::put(std::size_t position, TrialPtr trial) {
  const TrialPtr before = std::exchange(trials_[position], std::move(trial));
  const Trial& after = *trials_[position];
  if (before != nullptr) count(position, *before, false);
  count(position, after, true);
  tally_.update(position, before.get(), after);
  learn(before.get(), after);
  unexamined_.insert(position);
  if (may_need_judging(before.get(), after)) unjudged_.insert(position);
}

// ---- Counting ----------------------------------------------------------------------------------

// Adds the trial to the counts, or subtracts it (`is_there` false). Sets and fronts need no
// subtraction: the state that is added next replaces that of the position.
void Ledger::count(std::size_t position, const Trial& trial, bool is_there) {
  counter_of(spec_, trial, counts_) += is_there ? 1 : -1;
  if (is_infeasible(spec_, trial)) counts_.infeasible += is_there ? 1 : -1;
  count_replicate(position, trial, is_there);
  if (!is_there) return;
  set_member(active_, position, is_active(trial));
  set_member(failed_, position, trial.status.phase == TrialPhase::kFailed);
  count_result(position, trial);
}

// A replicate competes with no other trial, and reaches no goal.
void Ledger::count_result(std::size_t position, const Trial& trial) {
  const bool competes = !is_replicate(trial);
  set_member(reaching_goals_, position, competes && reaches_goals(spec_, trial));
  std::optional<search::Losses> losses;
  if (competes) losses = losses_of(spec_, trial, FactKind::kResult);
  // front(): a Study with replicates has one objective (api/study/check_study.cpp).
  if (spec_.replicates) {
    leaderboard_.rank(trial.spec.index, losses ? std::optional(losses->front()) : std::nullopt);
  }
  results_.set(position, std::move(losses));
  const Fact* stopped = competes ? newest_fact(trial, FactKind::kStopped) : nullptr;
  if (stopped == nullptr) return stopped_.set(position, std::nullopt);
  stopped_.set(position, losses_of(spec_, trial, FactKind::kStopped), stopped->step);
}

void Ledger::count_replicate(std::size_t position, const Trial& trial, bool is_there) {
  if (!is_replicate(trial)) return;
  counts_.replicates += is_there ? 1 : -1;
  const std::optional<std::int64_t> repeated = repeated_by(trial);
  if (!repeated) return;
  leaderboard_.count_replicates(*repeated, is_there ? 1 : -1);
  set_member(replicates_[*repeated], position, is_there);
}

std::vector<api::BestTrial> Ledger::best() const {
  const FactKind kind = results_.empty() ? FactKind::kStopped : FactKind::kResult;
  if (!spec_.replicates) return best_trials(spec_, front(), trials_, kind);
  Front repeated;  // of the leader alone
  const std::optional<std::size_t> leader = best_by_replicates();
  if (leader) repeated.set(*leader, results_.losses(*leader));
  std::vector<api::BestTrial> best = best_trials(spec_, leader ? repeated : front(), trials_, kind);
  for (api::BestTrial& one : best) {
    const auto index = trial_index(version_.name, one.trial);
    if (index) one.replicates = results_of_replicates(*index);
  }
  return best;
}

// ---- Replicates --------------------------------------------------------------------------------

bool Ledger::is_searching() const {
  return std::ranges::any_of(
      active_, [&](std::size_t position) { return !is_replicate(*trials_[position]); });
}

std::optional<std::int64_t> Ledger::next_to_repeat() const {
  if (!spec_.replicates || is_searching()) return std::nullopt;
  return leaderboard_.next(*spec_.replicates);
}

// The number of replicates to come, if the leaders stay and the search finds enough of them.
std::int64_t Ledger::missing_replicates() const {
  if (!spec_.replicates) return 0;
  const api::Replicates& wanted = *spec_.replicates;
  std::int64_t missing = leaderboard_.missing(wanted);
  if (searched() < spec_.budget.trials || is_searching()) {
    const auto known = std::ssize(leaderboard_.leaders(wanted.leaders));
    const std::int64_t leaders = std::min(wanted.leaders, spec_.budget.trials);
    missing += std::max<std::int64_t>(0, leaders - known) * wanted.runs;
  }
  return missing;
}

std::optional<api::ReplicateResults> Ledger::results_of_replicates(std::int64_t trial) const {
  const auto found = replicates_.find(trial);
  if (found == replicates_.end()) return std::nullopt;
  return replicate_results(spec_, trials_, found->second);
}

// The position of the leader with the best mean, the first among equals. nullopt while a leader has
// no ended replicate, or if no leader has a mean.
std::optional<std::size_t> Ledger::best_by_replicates() const {
  std::vector<std::int64_t> leaders = leaderboard_.leaders(spec_.replicates->leaders);
  std::ranges::sort(leaders);  // by index: of equals the trial that was created first
  std::optional<std::int64_t> best;
  double best_mean = 0;
  for (const std::int64_t leader : leaders) {
    const std::optional<api::ReplicateResults> results = results_of_replicates(leader);
    if (!results) return std::nullopt;
    if (!results->mean) continue;
    if (best && !is_better(spec_.objectives.front(), *results->mean, best_mean)) continue;
    best = leader;
    best_mean = *results->mean;
  }
  return best ? std::optional(position_of(*best)) : std::nullopt;
}

// ---- Time --------------------------------------------------------------------------------------

Spending Ledger::spending(const api::Study& study, std::int64_t now_ms) const {
  return tally_.spending(study, trials_, now_ms);
}

// Assumes that a new trial costs the average and a running trial the rest of it, and that all slots
// are always in use.
std::optional<double> Ledger::estimate_remaining(const Spending& spending, std::int64_t slots,
                                                 std::int64_t now_ms) const {
  const std::optional<double> average = tally_.average_seconds(trials_, now_ms);
  if (!average) return std::nullopt;
  const api::Budget& budget = spec_.budget;
  if (budget.trials >= api::kNoTrialLimit && !budget.wall_time) return std::nullopt;
  const std::int64_t missing =
      std::max<std::int64_t>(0, budget.trials - searched()) + missing_replicates();
  double work = *average * static_cast<double>(missing);
  for (const std::size_t position : active_) {
    const Trial& trial = *trials_[position];
    // A promoted trial is active and still Completed until its next run is planned.
    if (!api::is_terminal(trial.status.phase)) work += seconds_left(trial, *average, now_ms);
  }
  double remaining = work / static_cast<double>(std::max<std::int64_t>(1, slots));
  if (budget.wall_time) {
    remaining = std::min(remaining, std::max(0.0, *budget.wall_time - spending.active_seconds));
  }
  return remaining;
}

// ---- The history -------------------------------------------------------------------------------

std::size_t Ledger::position_of(std::int64_t index) const {
  const auto found = std::ranges::partition_point(
      trials_, [&](const TrialPtr& t) { return t->spec.index < index; });
  CHECK(found != trials_.end() && (*found)->spec.index == index, "there is no such trial");
  return static_cast<std::size_t>(found - trials_.begin());
}

std::int64_t Ledger::highest_seq() const {
  return history_.events.empty() ? 0 : history_.events.back().fact.seq;
}

// Collects what `after` adds to the history. Samplers have read the history as it is, so it may
// only grow at its end; any other change makes it stale, and flush() rebuilds it.
void Ledger::learn(const Trial* before, const Trial& after) {
  if (history_is_stale_) return;
  static const std::vector<Fact> kNone;
  const std::vector<Fact>& known = before == nullptr ? kNone : before->status.facts;
  const std::vector<Fact>& facts = after.status.facts;
  const bool is_next = before == nullptr && after.spec.index == next_index();
  // Stale: a trial appeared between known trials, or known facts have changed.
  history_is_stale_ = (before == nullptr && !is_next) || !is_prefix(known, facts);
  if (history_is_stale_) return;
  const auto at = static_cast<std::size_t>(after.spec.index);
  if (is_next) {
    history_.trials.push_back(after.spec.parameters);
    if (has_stages_) history_.stages.emplace_back();
  } else if (before->spec.parameters != after.spec.parameters) {
    history_is_stale_ = true;
    return;
  }
  if (has_stages_) history_.stages[at] = stage_of(after, next_index());
  for (std::size_t i = known.size(); i < facts.size(); ++i) {
    pending_events_.push_back({after.spec.index, facts[i]});
  }
}

// Appends the pending events to the history, or rebuilds it if it is stale. `created`: the number
// of trials that the Study's status knows of; one that was deleted since leaves a gap.
void Ledger::flush(std::int64_t created) {
  std::ranges::sort(pending_events_, comes_before);
  const std::vector<search::Event>& events = history_.events;
  // False if another controller has written a fact with a seq below the newest known one.
  const bool at_the_end = pending_events_.empty() || events.empty() ||
                          comes_before(events.back(), pending_events_.front());
  const bool is_whole = core::next_index(trials_, created) == next_index();
  if (history_is_stale_ || !at_the_end || !is_whole) {
    rebuild_history(created);
  } else {
    std::move(pending_events_.begin(), pending_events_.end(), std::back_inserter(history_.events));
    pending_events_.clear();
  }
  tally_.refresh(trials_);
}

// A trial that was deleted by hand leaves a gap. In its place the history has a failed trial
// without parameters, so that for the samplers trial i is at position i. `created`: see flush().
void Ledger::rebuild_history(std::int64_t created) {
  ++rebuilds_;
  history_is_stale_ = false;
  pending_events_.clear();
  history_ = {};
  const std::int64_t size = core::next_index(trials_, created);
  history_.trials.assign(static_cast<std::size_t>(size), Json::object());
  if (has_stages_) history_.stages.resize(history_.trials.size());
  std::vector<bool> present(history_.trials.size(), false);
  for (const TrialPtr& trial : trials_) {
    const auto at = static_cast<std::size_t>(trial->spec.index);
    history_.trials[at] = trial->spec.parameters;
    present[at] = true;
    if (has_stages_) history_.stages[at] = stage_of(*trial, size);
    for (const Fact& fact : trial->status.facts) {
      history_.events.push_back({trial->spec.index, fact});
    }
  }
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) continue;
    Fact deleted;  // seq 0: known before all that was recorded
    deleted.kind = FactKind::kFailed;
    deleted.values.resize(spec_.objectives.size());
    history_.events.push_back({static_cast<std::int64_t>(i), deleted});
  }
  std::ranges::sort(history_.events, comes_before);
  // The history may differ anywhere, and with it the verdict at any rung.
  for (std::size_t i = 0; i < trials_.size(); ++i) unjudged_.insert(i);
}

search::History history_of(const api::Study& study, const std::vector<TrialPtr>& trials) {
  return Ledger(study, trials).history();
}

}  // namespace fettle::core
