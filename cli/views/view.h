// RunView: a study at one moment, and values that the renderers derive from it.
//
// Pure: everything follows from the objects and from now_ms. Nothing here is stored anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "cli/views/timeline.h"

namespace fettle::cli {

// The effect of noise on the best trial (expected_best.h), in the units of the objective.
struct ExpectedBest {
  double expected = 0;                    // at the trial's parameters, by the model
  double noise = 0;                       // standard deviation of results there
  std::optional<api::BestTrial> luckier;  // the trial with the best value, if it is another one
};

struct RunView {
  api::Study study;
  std::vector<api::TrialPtr> trials;    // sorted by spec.index
  std::vector<TimelineEntry> timeline;  // oldest first; the renderers show the newest
  std::int64_t now_ms = 0;
  bool interrupted = false;                   // no runner exists, though the study has not ended
  std::optional<ExpectedBest> expected_best;  // of study.status.best.front(); set by expect_best()
  std::string workers;                        // the warm workers of a local run; "" = none
  std::string notice;                         // the runner's own message ("stopping ...")
};

// Returns where the log of a run is: a file, or the command that prints it.
using LogHint = std::function<std::string(const std::string& trial, std::int64_t run)>;

// Derives counts, best trials, spending and ETA in study.status from the trials, as of now_ms: the
// stored status lags behind them by up to a second, spending by up to a minute.
void bring_up_to_date(RunView& view);

// Returns "running" and so on like state_of below, or "interrupted".
std::string state_of(const RunView& view);
// Returns the condition of that type if it is true, else nullptr.
const api::StatusCondition* true_condition(const api::Study& study, std::string_view type);
// Returns "succeeded", "failed", "suspended", "running" or "waiting", from the conditions.
std::string state_of(const api::Study& study);
// Returns the message of the condition that gives the state; "" without one.
std::string message_of(const api::Study& study);

// Returns the present objective of a trial: that of its result, otherwise that of its newest report
// (or the best one, if the objective takes that). `objective` indexes spec.objectives.
std::optional<double> objective_now(const api::StudySpec& spec, const api::Trial& trial,
                                    std::size_t objective = 0);

// The number of trials in the end: the budget, more if trials take over from others, and the
// replicates. nullopt: not limited.
std::optional<std::int64_t> planned_trials(const api::Study& study);

// "7 of 20 trials"; "7 trials" if their number is not limited.
std::string of_planned_trials(const api::Study& study, std::int64_t count);

// "accuracy 0.91, seconds 12": the values of one of the best trials.
std::string objectives_text(const api::StudySpec& spec, const api::BestTrial& best);

// A trial's result for the first objective, in the order in which results were learnt.
struct TrialResult {
  std::int64_t seq = 0;
  std::int64_t at_ms = 0;
  std::string trial;
  double value = 0;
  bool best_so_far = false;
  bool is_replicate = false;  // never the best by its own value
};
// Returns feasible results only.
std::vector<TrialResult> results_in_order(const api::StudySpec& spec,
                                          const std::vector<api::TrialPtr>& trials);

// Returns the trial of that name, or nullptr.
const api::Trial* find_trial(const std::vector<api::TrialPtr>& trials, std::string_view name);

// " at epoch 9"; "" if the Study counts no steps.
std::string at_step(const api::StudySpec& spec, std::int64_t step);
// Returns the newest run, or nullptr.
const api::RunRecord* newest_run(const api::Trial& trial);
// Whether the trial completed a rung and may continue from there. Once the Study has ended, it
// counts as stopped early.
bool has_paused(const api::Trial& trial);
// Returns the trial's phase as commands print it: that of its status, "Paused" or "Interrupted".
std::string phase_of(const RunView& view, const api::Trial& trial);
// Whether the trial's end or pause was infeasible; at a rung a constraint may be violated only for
// now.
bool ended_infeasible(const api::Trial& trial);
// Returns why a trial ended: the reason of its stop or failure; "" if it did not.
std::string ending_of(const api::Trial& trial);
// Returns the seconds from the study's start to its end, or up to now; 0 before it started.
double elapsed_seconds(const RunView& view);
// Returns the seconds in which the trial's runs ran, up to now.
double running_seconds(const api::Trial& trial, std::int64_t now_ms);
// Returns a metric of the newest report.
std::optional<double> metric_of(const api::Trial& trial, std::string_view metric);

}  // namespace fettle::cli
