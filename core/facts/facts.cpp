// Derives facts from a trial's status (phase, report), in the order in which they get their seq.
#include "core/facts/facts.h"

#include <algorithm>

#include "core/facts/history.h"
#include "core/facts/measurement.h"
#include "core/facts/trial_cost.h"
#include "search/rungs/promotion.h"
#include "search/study_problem.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::HistoryPoint;
using api::TrialPhase;

namespace {

// The step of the fact about the trial's end. A completed trial counts as ended at the step that it
// was asked for, even if an image that ignores untilStep trained further; unless it reached the
// last step of the Study, which is a result.
std::int64_t ended_at(const api::Study& study, const api::Trial& trial) {
  if (trial.status.phase != TrialPhase::kCompleted) {
    return trial.status.report ? trial.status.report->step : 0;
  }
  const std::int64_t last = study.spec.resource.max;
  const std::int64_t asked = completed_step(trial);
  const std::int64_t reached = reached_step(trial.status, asked);
  return std::min(reached, reached >= last ? std::max(asked, last) : asked);
}

// Whether the facts already say how the trial ended. A trial that pauses at rungs has one end for
// each rung that it was sent to, so ends are also counted: a later one may be at no higher step.
bool end_is_recorded(const api::Study& study, const api::Trial& trial) {
  const bool failed = trial.status.phase == TrialPhase::kFailed;
  const std::int64_t reached = ended_at(study, trial);
  const std::vector<Fact>& facts = trial.status.facts;
  const bool has_end = std::ranges::any_of(facts, [&](const Fact& fact) {
    if (fact.kind == FactKind::kRung) return false;
    // A trial that failed after a pause has facts about the pause, and still needs its own.
    return fact.kind == FactKind::kFailed || (!failed && fact.step >= reached);
  });
  return has_end &&
         (newest_fact(trial, FactKind::kFailed) != nullptr || ends_of(trial) >= legs_of(trial));
}

bool has_no_gpu(const api::Trial& trial) {
  return trial.status.phase == TrialPhase::kCompleted && trial.spec.stop &&
         trial.spec.stop->reason == kNoSuchGpuMemory;
}

bool has_all_objectives(const api::StudySpec& spec, const HistoryPoint& point) {
  return std::ranges::all_of(spec.objectives, [&point](const api::Objective& objective) {
    return point.metrics.count(objective.metric) > 0;
  });
}

// Whether the curve has a value of each objective at or before `step`.
bool is_measured_by(const api::StudySpec& spec, const std::vector<HistoryPoint>& curve,
                    std::int64_t step) {
  return std::ranges::all_of(spec.objectives, [&](const api::Objective& objective) {
    return std::ranges::any_of(curve, [&](const HistoryPoint& point) {
      return point.step <= step && point.metrics.count(objective.metric) > 0;
    });
  });
}

Fact rung_fact(const api::StudySpec& spec, const std::vector<HistoryPoint>& curve,
               std::int64_t rung, std::int64_t at_step, std::int64_t now_ms) {
  Measurement measurement = measure_at(spec, curve, at_step);
  return {.seq = 0,
          .kind = FactKind::kRung,
          .step = rung,
          .values = std::move(measurement.values),
          .infeasible = measurement.infeasible,
          .at_ms = now_ms};
}

// Adds the rungs up to the trial's step that are not among its facts yet, with the values that
// facts.h defines. If trials pause, a trial that trains past a rung gets the value up to the rung,
// like one that pauses there: otherwise the two could not be compared.
void add_rung_facts(const api::Study& study, const api::Trial& trial,
                    const std::vector<std::int64_t>& rungs, std::int64_t now_ms,
                    std::vector<Fact>& facts) {
  if (!trial.status.report || rungs.empty()) return;
  const api::StudySpec& spec = study.spec;
  const Fact* newest = newest_fact(trial, FactKind::kRung);
  // A trial that continues from its parent's checkpoint has no rungs up to that step.
  const std::int64_t begun = trial.spec.parent ? trial.spec.parent->step : -1;
  auto rung = std::ranges::upper_bound(rungs, newest == nullptr ? begun : newest->step);
  const bool completed = trial.status.phase == TrialPhase::kCompleted;
  const std::int64_t sent_to = completed ? completed_step(trial) : 0;  // else it may still report
  // Most reports reach no new rung: return before the curve is read, which takes long.
  if (rung == rungs.end() || *rung > std::max(sent_to, trial.status.report->step)) return;
  const bool pauses = search::promotes(search::problem_of(study));
  const std::vector<HistoryPoint> curve = curve_of(*trial.status.report);
  for (const HistoryPoint& point : curve) {
    if (!has_all_objectives(spec, point)) continue;
    // One point may settle several rungs: the program may report less often than at each.
    for (; rung != rungs.end() && *rung <= point.step; ++rung) {
      const bool is_known = pauses && is_measured_by(spec, curve, *rung);
      facts.push_back(rung_fact(spec, curve, *rung, is_known ? *rung : point.step, now_ms));
    }
  }
  // Rungs without a point of the curve at or after them: the program exited with 0 before them.
  if (!pauses || curve.empty()) return;
  for (; rung != rungs.end() && *rung <= sent_to; ++rung) {
    const bool is_known = is_measured_by(spec, curve, *rung);
    facts.push_back(rung_fact(spec, curve, *rung, is_known ? *rung : curve.back().step, now_ms));
  }
}

// Returns the fact about the trial's end: Failed, Result (it ran to its end) or Stopped (early, or
// paused at a rung).
Fact end_fact(const api::Study& study, const api::Trial& trial, std::int64_t now_ms) {
  Fact fact;
  fact.at_ms = now_ms;
  fact.step = ended_at(study, trial);
  fact.values.resize(study.spec.objectives.size());  // all absent
  if (study.spec.algorithm.cost_aware) fact.cost = cost_of(study, trial, now_ms);
  if (trial.status.phase == TrialPhase::kFailed) {
    fact.kind = FactKind::kFailed;
    return fact;
  }
  // No GPU is large enough: samplers must avoid the configuration, however good its first steps.
  if (has_no_gpu(trial)) {
    fact.kind = FactKind::kResult;
    fact.infeasible = true;
    return fact;
  }
  const std::int64_t last = study.spec.resource.max;
  const bool completed = trial.status.phase == TrialPhase::kCompleted;
  // A trial that pauses at rungs completes at each one; only at the last step is it a result: if it
  // was sent to that step (completed_step), or trained on to it unasked (fact.step).
  const bool is_before_last = completed_step(trial) < last && fact.step < last;
  const bool paused = is_before_last && search::promotes(search::problem_of(study));
  const bool is_result = completed && !paused;
  fact.kind = is_result ? FactKind::kResult : FactKind::kStopped;
  fact.infeasible = is_result;  // a trial that completed without a report has no values
  if (trial.status.report) {
    const api::Report& report = *trial.status.report;
    // Constraints count only at the end: before it, a metric may still come within its limit.
    Measurement measurement = is_result ? measure_end(study.spec, report, /*completed=*/true)
                                        : measure_objectives(study.spec, report);
    fact.values = std::move(measurement.values);
    // A stopped trial that never reported is not infeasible: nothing is known about it.
    fact.infeasible = measurement.infeasible && (completed || !curve_of(report).empty());
  }
  return fact;
}

}  // namespace

std::vector<Fact> unrecorded_facts(const api::Study& study, const api::Trial& trial,
                                   const std::vector<std::int64_t>& rungs, std::int64_t now_ms) {
  std::vector<Fact> facts;
  const bool terminal = api::is_terminal(trial.status.phase);
  if (terminal && end_is_recorded(study, trial)) return facts;
  if (!is_replicate(trial)) add_rung_facts(study, trial, rungs, now_ms, facts);
  if (terminal) facts.push_back(end_fact(study, trial, now_ms));
  return facts;
}

}  // namespace fettle::core
