// SuggestTrials: the trials of a suggest session: their history, their states, the best of them.
//
// It holds what happened and decides nothing. Facts may be added before they are certain
// (add_fact) and taken back (forget_facts), since a verdict rests on them. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "cli/suggest/suggest_journal.h"
#include "core/study/best.h"
#include "search/search.h"

namespace fettle::cli {

struct SuggestTrial {
  TrialState state = TrialState::kRunning;
  std::size_t next_rung = 0;  // the first rung without a fact
  double cost = 0;            // until its end or pause, if known
  bool again = false;         // to be handed out again: its process was lost
  bool is_known = false;      // to the client: this session has handed it out
  // The values of the report that ended it; absent: it runs, or a tell ended it.
  std::optional<std::vector<std::optional<double>>> last_report = std::nullopt;
  std::vector<std::optional<double>> values{};  // of its result
};

class SuggestTrials {
 public:
  // `promotes`: trials pause at rungs.
  SuggestTrials(api::StudySpec spec, bool promotes) : spec_(std::move(spec)), promotes_(promotes) {}

  const search::History& history() const { return history_; }
  std::size_t size() const { return trials_.size(); }
  std::int64_t next_index() const { return static_cast<std::int64_t>(trials_.size()); }
  std::int64_t highest_seq() const;
  const SuggestTrial& operator[](std::size_t trial) const { return trials_[trial]; }
  SuggestTrial& at(std::size_t trial) { return trials_[trial]; }

  void begin(Json parameters, const search::Stage& stage, TrialState state);
  // Sends a paused trial on to this stage.
  void resume(std::size_t trial, const search::Stage& stage);
  // Ends a paused trial for good.
  void end(std::size_t trial);

  // Adds the fact under the next seq.
  void add_fact(std::size_t trial, api::Fact fact);
  void forget_facts(std::size_t count) { history_.events.resize(count); }
  // Takes over the cost and the result in the newest fact, of a trial that has ended or paused.
  void settle(std::size_t trial, TrialState state);
  void set_state(std::size_t trial, TrialState state);

  double spent() const { return spent_; }          // the sum of all costs
  bool any_active() const { return active_ > 0; }  // waiting or running
  // The completed feasible trials that no other one dominates, ascending.
  std::vector<std::size_t> best() const;

 private:
  const api::StudySpec spec_;
  const bool promotes_;
  search::History history_;
  std::vector<SuggestTrial> trials_;
  core::Front front_;
  double spent_ = 0;
  std::int64_t active_ = 0;
};

}  // namespace fettle::cli
