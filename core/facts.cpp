// From status (phase, report) to facts, in the order in which they are to be learnt.
#include "core/facts.h"

#include <algorithm>

#include "core/history.h"
#include "core/plan.h"
#include "core/report.h"
#include "core/run_records.h"
#include "core/spending.h"
#include "search/schedule.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::HistoryPoint;
using api::TrialPhase;

namespace {

// How far a completed trial got. An image that knows nothing of untilStep may have gone on to the
// end.
std::int64_t reached_step(const api::Study& study, const api::Trial& trial) {
  const std::int64_t asked = completed_step(trial);
  const bool at_the_end =
      trial.status.report && trial.status.report->step >= study.spec.resource.max;
  return at_the_end ? std::max(asked, study.spec.resource.max) : asked;
}

// Whether the facts already tell how the trial ended. One that pauses at rungs ends more than once.
bool end_is_recorded(const api::Study& study, const api::Trial& trial) {
  const bool failed = trial.status.phase == TrialPhase::kFailed;
  const std::int64_t reported = trial.status.report ? trial.status.report->step : 0;
  const std::int64_t reached =
      trial.status.phase == TrialPhase::kCompleted ? reached_step(study, trial) : reported;
  return std::any_of(trial.status.facts.begin(), trial.status.facts.end(), [&](const Fact& fact) {
    if (fact.kind == FactKind::kRung) return false;
    return fact.kind == FactKind::kFailed || (!failed && fact.step >= reached);
  });
}

bool has_all_objectives(const api::StudySpec& spec, const HistoryPoint& point) {
  return std::all_of(spec.objectives.begin(), spec.objectives.end(),
                     [&point](const api::Objective& objective) {
                       return point.metrics.count(objective.metric) > 0;
                     });
}

void add_rung_facts(const api::Study& study, const api::Trial& trial,
                    const std::vector<std::int64_t>& rungs, std::int64_t now_ms,
                    std::vector<Fact>& facts) {
  if (!trial.status.report || rungs.empty()) return;
  const Fact* newest = newest_fact(trial, FactKind::kRung);
  // What was before is the parent's.
  const std::int64_t begun = trial.spec.parent ? trial.spec.parent->step : -1;
  auto rung =
      std::upper_bound(rungs.begin(), rungs.end(), newest == nullptr ? begun : newest->step);
  if (rung == rungs.end() || *rung > trial.status.report->step) return;
  const std::vector<HistoryPoint> curve = curve_of(*trial.status.report);
  for (const HistoryPoint& point : curve) {
    if (!has_all_objectives(study.spec, point)) continue;
    for (; rung != rungs.end() && *rung <= point.step; ++rung) {
      Measured measured = measure_at(study.spec, curve, point.step);
      facts.push_back({.seq = 0,
                       .kind = FactKind::kRung,
                       .step = *rung,
                       .values = std::move(measured.values),
                       .infeasible = measured.infeasible,
                       .at_ms = now_ms});
    }
  }
}

Fact end_fact(const api::Study& study, const api::Trial& trial, std::int64_t now_ms) {
  Fact fact;
  fact.at_ms = now_ms;
  fact.step = trial.status.report ? trial.status.report->step : 0;
  fact.values.resize(study.spec.objectives.size());
  if (study.spec.algorithm.cost_aware) fact.cost = cost_of(study, trial, now_ms);
  if (trial.status.phase == TrialPhase::kFailed) {
    fact.kind = FactKind::kFailed;
    return fact;
  }
  const bool completed = trial.status.phase == TrialPhase::kCompleted;
  const std::int64_t reached = completed ? reached_step(study, trial) : fact.step;
  const bool paused = search::promotes(problem_of(study)) && reached < study.spec.resource.max;
  fact.kind = completed && !paused ? FactKind::kResult : FactKind::kStopped;
  fact.infeasible = completed;
  if (trial.status.report) {
    const api::Report& report = *trial.status.report;
    Measured measured = measure_end(study.spec, report, completed);
    fact.values = std::move(measured.values);
    // A stopped trial that never reported is not infeasible: nothing is known about it.
    fact.infeasible = measured.infeasible && (completed || !curve_of(report).empty());
  }
  if (completed) fact.step = reached;
  return fact;
}

}  // namespace

std::vector<Fact> unrecorded_facts(const api::Study& study, const api::Trial& trial,
                                   const std::vector<std::int64_t>& rungs, std::int64_t now_ms) {
  std::vector<Fact> facts;
  const bool terminal = api::is_terminal(trial.status.phase);
  if (terminal && end_is_recorded(study, trial)) return facts;
  add_rung_facts(study, trial, rungs, now_ms, facts);
  if (terminal) facts.push_back(end_fact(study, trial, now_ms));
  return facts;
}

}  // namespace fettle::core
