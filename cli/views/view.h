// RunView: a study at one moment, and what the renderers derive from it.
//
// Pure: everything follows from the objects and from now_ms. Nothing here is stored anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "cli/views/timeline.h"

namespace fettle::cli {

struct RunView {
  api::Study study;
  std::vector<api::TrialPtr> trials;    // sorted by spec.index
  std::vector<TimelineEntry> timeline;  // oldest first; the renderers show the newest
  std::int64_t now_ms = 0;
  bool interrupted = false;  // no runner is there, though the study has not ended
  std::string notice;        // what the runner itself has to say ("stopping ...")
};

// Where the log of a run is: a file, or the command that prints it.
using LogHint = std::function<std::string(const std::string& trial, std::int64_t run)>;

// Derives counts, best trials, spending and ETA in study.status from the trials, as of now_ms: the
// stored status lags behind them by up to a second, spending by up to a minute.
void bring_up_to_date(RunView& view);

// "running" and so on as state_of says, or "interrupted".
std::string state_of(const RunView& view);
// The condition of that type if it is true, else nullptr.
const api::StatusCondition* true_condition(const api::Study& study, std::string_view type);
// "succeeded", "failed", "suspended", "running" or "waiting", from the conditions.
std::string state_of(const api::Study& study);

// The objective a trial has now: that of its result, otherwise that of its newest report (or the
// best one, if the objective takes that). `objective` indexes spec.objectives.
std::optional<double> objective_now(const api::StudySpec& spec, const api::Trial& trial,
                                    std::size_t objective = 0);

// How many trials there will be: the budget, and more where trials take over from others.
std::int64_t planned_trials(const api::Study& study);

// "accuracy 0.91, seconds 12": the values of one of the best trials.
std::string objectives_text(const api::StudySpec& spec, const api::BestTrial& best);

// A trial's result for the first objective, in the order in which results were learnt.
struct TrialResult {
  std::int64_t seq = 0;
  std::int64_t at_ms = 0;
  std::string trial;
  double value = 0;
  bool best_so_far = false;
};
// Feasible results only.
std::vector<TrialResult> results_in_order(const api::StudySpec& spec,
                                          const std::vector<api::TrialPtr>& trials);

// The trial of that name, or nullptr.
const api::Trial* find_trial(const std::vector<api::TrialPtr>& trials, std::string_view name);

// " at epoch 9"; "" where the Study counts no steps.
std::string at_step(const api::StudySpec& spec, std::int64_t step);
// The newest run, or nullptr.
const api::RunRecord* newest_run(const api::Trial& trial);
// Whether the trial completed a rung and may continue from there. Once the Study has ended, it
// counts as stopped early.
bool has_paused(const api::Trial& trial);
// Why a trial ended: the reason of its stop or failure; "" when it did not.
std::string ending_of(const api::Trial& trial);
// Seconds in which the trial's runs ran, up to now.
double running_seconds(const api::Trial& trial, std::int64_t now_ms);
// A metric of the newest report.
std::optional<double> metric_of(const api::Trial& trial, std::string_view metric);

}  // namespace fettle::cli
