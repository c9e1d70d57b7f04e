// Ledger: the aggregates over all trials of a Study, kept from reconcile to reconcile.
//
// A reconcile reads only the trials that changed since the one before; the aggregates that a plan
// needs of all trials (the history, spending, counts, the front) are updated incrementally. It is
// only a cache: a new ledger of the same trials gives the same answers, and so the same plans
// (core/study/ledger_test.cpp).
//
// While a plan is made, the ledger holds the trials as they will be once it is carried out: the
// planner enters its decisions. The next update() compares pointers, and reads every trial again
// that is not the very object it knows; so decisions that were not stored are forgotten.
// Not synchronised; one ledger for one Study.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/study/best.h"
#include "core/study/replicates.h"
#include "core/study/spending.h"
#include "search/search.h"

namespace fettle::core {

// Everything that a ledger's content depends on: if any of it changes, the ledger is rebuilt.
struct StudyVersion {
  std::string name;
  std::string uid;
  std::int64_t generation = -1;
  std::vector<api::SearchPeriod> periods;  // how trials are chosen (search_period.h)
  std::size_t priors = 0;                  // observations of earlier Studies

  bool operator==(const StudyVersion&) const = default;
};
StudyVersion version_of(const api::Study& study);

class Ledger {
 public:
  Ledger() = default;
  Ledger(const api::Study& study, const std::vector<api::TrialPtr>& trials) {
    update(study, trials);
  }

  // Makes it the ledger of these trials, sorted by index. Rebuilds everything if version_of(study)
  // has changed.
  void update(const api::Study& study, const std::vector<api::TrialPtr>& trials);

  // version_of(study) at the last update().
  const StudyVersion& version() const { return version_; }

  // Decisions of a plan: the trial at `position` becomes `trial`; a trial is created.
  void replace(std::size_t position, api::TrialPtr trial);
  void append(api::TrialPtr trial);

  const std::vector<api::TrialPtr>& trials() const { return trials_; }
  std::size_t position_of(std::int64_t index) const;  // CHECKs that it is there
  const search::Problem& problem() const { return problem_; }
  const std::vector<std::int64_t>& rungs() const { return rungs_; }  // search::rung_steps

  // The history in seq order. It only grows, except when it has to be rebuilt; rebuilds() counts
  // that. A sampler that has read an earlier one is then discarded.
  const search::History& history() const { return history_; }
  std::int64_t rebuilds() const { return rebuilds_; }
  std::int64_t highest_seq() const;
  // The index of the next trial.
  std::int64_t next_index() const { return static_cast<std::int64_t>(history_.trials.size()); }

  // Positions, ascending: trials that are active (history.h), that failed, and whose result reaches
  // the goals of the Study.
  const std::set<std::size_t>& active() const { return active_; }
  const std::set<std::size_t>& failed() const { return failed_; }
  const std::set<std::size_t>& reaching_goals() const { return reaching_goals_; }

  // Numbers of replicates (replicates.h), and of the trials of the search, deleted trials included.
  std::int64_t replicates() const { return counts_.replicates; }
  std::int64_t searched() const { return next_index() - replicates(); }
  // The index of the trial to repeat next, once no further trial of the search comes. Absent while
  // a trial of the search is active, since it may still become a leader.
  std::optional<std::int64_t> next_to_repeat() const;

  // Positions, ascending, of trials that are new or have changed since the last call. Unexamined:
  // their status may show facts that are not recorded. Unjudged: their facts changed, so that a
  // rung may have to be judged. For all other trials the last answers still hold.
  std::set<std::size_t> take_unexamined() { return std::exchange(unexamined_, {}); }
  std::set<std::size_t> take_unjudged() { return std::exchange(unjudged_, {}); }
  // Gives back positions that were taken and not handled.
  void leave_unexamined(std::size_t position) { unexamined_.insert(position); }
  void leave_unjudged(std::size_t position) { unjudged_.insert(position); }

  const api::TrialCounts& counts() const { return counts_; }  // except `created`
  // The best of the trials that reached their last step or, if none has, of the stopped trials,
  // without replicates. Once each leader has a replicate that ended, the best is the leader whose
  // replicates have the best mean: the measured values were selected for luck.
  std::vector<api::BestTrial> best() const;
  std::optional<double> hypervolume() const { return front().hypervolume(spec_); }
  bool has_best() const { return !front().empty(); }
  Spending spending(const api::Study& study, std::int64_t now_ms) const;
  // Estimates the seconds until the Study is done, if `slots` trials run at once and take as long
  // as the ended trials took on average; absent before the first one has ended.
  std::optional<double> estimate_remaining(const Spending& spending, std::int64_t slots,
                                           std::int64_t now_ms) const;

 private:
  void reset(const api::Study& study);
  void put(std::size_t position, api::TrialPtr trial);
  void count(std::size_t position, const api::Trial& trial, bool is_there);
  void learn(const api::Trial* before, const api::Trial& after);
  void count_result(std::size_t position, const api::Trial& trial);
  void count_replicate(std::size_t position, const api::Trial& trial, bool is_there);
  bool is_searching() const;
  std::int64_t missing_replicates() const;
  std::optional<api::ReplicateResults> results_of_replicates(std::int64_t trial) const;
  std::optional<std::size_t> best_by_replicates() const;
  void flush(std::int64_t created);
  void rebuild_history(std::int64_t created);
  const Front& front() const { return results_.empty() ? stopped_ : results_; }

  // Derived from the Study.
  StudyVersion version_;
  api::StudySpec spec_;
  search::Problem problem_;
  std::vector<std::int64_t> rungs_;
  bool has_stages_ = false;

  std::vector<api::TrialPtr> trials_;
  std::set<std::size_t> unexamined_;
  std::set<std::size_t> unjudged_;

  search::History history_;
  std::vector<search::Event> pending_events_;  // not in history_ yet
  bool history_is_stale_ = false;
  std::int64_t rebuilds_ = 0;

  std::set<std::size_t> active_;
  std::set<std::size_t> failed_;
  std::set<std::size_t> reaching_goals_;
  Leaderboard leaderboard_;                                   // with spec_.replicates
  std::map<std::int64_t, std::set<std::size_t>> replicates_;  // positions, by the repeated trial
  api::TrialCounts counts_;
  Front results_;
  Front stopped_;
  SpendingTally tally_;
};

// The history of the Study in order of seq, for samplers and rules that stop trials early.
search::History history_of(const api::Study& study, const std::vector<api::TrialPtr>& trials);

}  // namespace fettle::core
