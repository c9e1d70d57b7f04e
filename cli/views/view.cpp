#include "cli/views/view.h"

#include <algorithm>
#include <utility>

#include "cli/terminal/text.h"
#include "core/conditions.h"
#include "core/facts/history.h"
#include "core/facts/measurement.h"
#include "core/study/best.h"
#include "core/study/ledger.h"
#include "core/study/study_status.h"

namespace fettle::cli {
namespace {

// Estimates how many trials this machine runs at once: the number that it runs now.
std::int64_t slots_of(const RunView& view) {
  const auto running = std::ranges::count_if(view.trials, [](const api::TrialPtr& trial) {
    return trial->status.phase == api::TrialPhase::kRunning;
  });
  const std::int64_t most = view.study.spec.budget.parallelism;
  return running > 0 ? std::min<std::int64_t>(running, most) : most;
}

}  // namespace

void bring_up_to_date(RunView& view) {
  const core::Ledger ledger(view.study, view.trials);
  const core::Spending spending = ledger.spending(view.study, view.now_ms);
  // As if nothing ended the Study: only numbers are used, and readers of eta_seconds check the
  // state first.
  const core::StudyOutlook outlook{ledger,          spending,     slots_of(view),
                                   /*draining=*/{}, /*ended=*/{}, /*algorithm=*/""};
  api::StudyStatus now = core::study_status(view.study, outlook, view.now_ms);
  api::StudyStatus& status = view.study.status;
  status.trials = now.trials;
  status.best = std::move(now.best);
  status.hypervolume = now.hypervolume;
  status.active_seconds = now.active_seconds;
  status.gpu_hours = now.gpu_hours;
  status.eta_seconds = now.eta_seconds;
}

const api::StatusCondition* true_condition(const api::Study& study, std::string_view type) {
  const auto* condition = core::find_condition(study.status.conditions, std::string(type));
  return condition != nullptr && condition->status ? condition : nullptr;
}

std::string state_of(const api::Study& study) {
  if (true_condition(study, "Succeeded")) return "succeeded";
  if (true_condition(study, "Failed")) return "failed";
  if (true_condition(study, "Suspended")) return "suspended";
  return study.status.started_ms > 0 ? "running" : "waiting";
}

std::string message_of(const api::Study& study) {
  for (const char* type : {"Succeeded", "Failed", "Suspended", "Running"}) {
    if (const auto* condition = true_condition(study, type)) return condition->message;
  }
  return "";
}

std::string state_of(const RunView& view) {
  return view.interrupted ? "interrupted" : state_of(view.study);
}

std::optional<double> objective_now(const api::StudySpec& spec, const api::Trial& trial,
                                    std::size_t objective) {
  if (const api::Fact* result = core::newest_fact(trial, api::FactKind::kResult)) {
    if (objective < result->values.size()) return result->values[objective];
    return std::nullopt;
  }
  if (!trial.status.report || objective >= spec.objectives.size()) return std::nullopt;
  return core::measure_end(spec, *trial.status.report, /*completed=*/false).values[objective];
}

std::optional<std::int64_t> planned_trials(const api::Study& study) {
  return core::planned_trials(study.spec, study.status.trials, core::is_finished(study.status));
}

std::string of_planned_trials(const api::Study& study, std::int64_t count) {
  const auto planned = planned_trials(study);
  if (!planned) return plural(count, "trial");
  return format_count(count) + " of " + plural(*planned, "trial");
}

std::string objectives_text(const api::StudySpec& spec, const api::BestTrial& best) {
  std::string text;
  for (std::size_t i = 0; i < best.objectives.size() && i < spec.objectives.size(); ++i) {
    if (!text.empty()) text += ", ";
    text += printable(spec.objectives[i].metric) + ' ' + format_number(best.objectives[i]);
  }
  return text;
}

std::vector<TrialResult> results_in_order(const api::StudySpec& spec,
                                          const std::vector<api::TrialPtr>& trials) {
  std::vector<TrialResult> results;
  for (const api::TrialPtr& trial : trials) {
    const api::Fact* fact = core::newest_fact(*trial, api::FactKind::kResult);
    if (fact == nullptr || fact->infeasible || fact->values.empty() || !fact->values[0]) continue;
    results.push_back({.seq = fact->seq,
                       .at_ms = fact->at_ms,
                       .trial = trial->metadata.name,
                       .value = *fact->values[0],
                       .is_replicate = core::is_replicate(*trial)});
  }
  std::ranges::sort(results, {}, &TrialResult::seq);
  std::optional<double> best;
  for (TrialResult& result : results) {
    if (result.is_replicate) continue;
    result.best_so_far = !best || core::is_better(spec.objectives[0], result.value, *best);
    if (result.best_so_far) best = result.value;
  }
  return results;
}

std::string at_step(const api::StudySpec& spec, std::int64_t step) {
  if (!core::counts_steps(spec)) return "";
  return " at " + printable(spec.resource.unit) + ' ' + std::to_string(step);
}

const api::Trial* find_trial(const std::vector<api::TrialPtr>& trials, std::string_view name) {
  const auto found = std::ranges::find_if(
      trials, [&](const api::TrialPtr& trial) { return trial->metadata.name == name; });
  return found == trials.end() ? nullptr : found->get();
}

const api::RunRecord* newest_run(const api::Trial& trial) {
  return trial.status.runs.empty() ? nullptr : &trial.status.runs.back();
}

bool has_paused(const api::Trial& trial) {
  const api::Fact* end = core::newest_end(trial);
  return trial.status.phase == api::TrialPhase::kCompleted && end != nullptr &&
         end->kind == api::FactKind::kStopped;
}

std::string phase_of(const RunView& view, const api::Trial& trial) {
  if (view.interrupted && trial.status.phase == api::TrialPhase::kRunning) return "Interrupted";
  if (has_paused(trial)) return "Paused";
  return std::string(api::to_string(trial.status.phase));
}

bool ended_infeasible(const api::Trial& trial) {
  const api::Fact* end = core::newest_end(trial);
  return end != nullptr && end->infeasible;
}

std::string ending_of(const api::Trial& trial) {
  if (trial.status.phase == api::TrialPhase::kStopped && trial.spec.stop) {
    return trial.spec.stop->message.empty() ? trial.spec.stop->reason : trial.spec.stop->message;
  }
  if (trial.status.phase != api::TrialPhase::kFailed) return "";
  for (const api::StatusCondition& condition : trial.status.conditions) {
    if (condition.type == "Failed" && condition.status && !condition.message.empty()) {
      return condition.message;
    }
  }
  const api::RunRecord* run = newest_run(trial);
  return run == nullptr ? "" : run->message;
}

double elapsed_seconds(const RunView& view) {
  const api::StudyStatus& status = view.study.status;
  if (status.started_ms == 0) return 0;
  const std::int64_t end = status.ended_ms > 0 ? status.ended_ms : view.now_ms;
  return static_cast<double>(std::max<std::int64_t>(end - status.started_ms, 0)) / 1000;
}

double running_seconds(const api::Trial& trial, std::int64_t now_ms) {
  double seconds = 0;
  for (const api::RunRecord& run : trial.status.runs) {
    if (run.running_ms == 0) continue;
    const std::int64_t end = run.ended_ms > 0 ? run.ended_ms : now_ms;
    seconds += static_cast<double>(std::max<std::int64_t>(end - run.running_ms, 0)) / 1000;
  }
  return seconds;
}

std::optional<double> metric_of(const api::Trial& trial, std::string_view metric) {
  if (!trial.status.report) return std::nullopt;
  const auto& metrics = trial.status.report->metrics;
  const auto found = metrics.find(std::string(metric));
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace fettle::cli
