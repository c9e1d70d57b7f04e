// page_data: the data of a Study for the page. Times are milliseconds since the Study began; a
// value that is absent or not finite is null.
#include "cli/report/study_data.h"

#include <algorithm>
#include <cmath>

#include "api/fields/enum_names.h"
#include "api/fields/timestamp.h"
#include "api/study/parameter_env.h"
#include "api/study/study.h"
#include "api/trial/metric_names.h"
#include "api/trial/report.h"
#include "api/trial/trial.h"
#include "cli/report/insight.h"
#include "cli/report/page.h"
#include "cli/views/reason.h"
#include "cli/views/time_spent.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"
#include "core/facts/trial_cost.h"
#include "core/study/best.h"

namespace fettle::cli {
namespace {

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json finite(const std::optional<double>& value) { return value ? finite(*value) : Json(); }

Json parameter_data(const api::Parameter& parameter) {
  Json out = Json::object({{"name", parameter.name},
                           {"env", api::parameter_env_name(parameter.name)},
                           {"type", api::to_string(parameter.type)},
                           {"log", parameter.scale == api::Scale::kLog}});
  if (parameter.type == api::ParameterType::kCategorical) {
    out.set("values", Json(parameter.values));
  } else if (parameter.type == api::ParameterType::kBoolean) {
    out.set("values", Json::Array{Json(false), Json(true)});
  } else {
    out.set("min", parameter.min).set("max", parameter.max);
  }
  if (parameter.when) {
    out.set("when", Json::object({{"parameter", parameter.when->parameter},
                                  {"in", Json(parameter.when->in)}}));
  }
  return out;
}

Json objective_data(const api::Objective& objective) {
  return Json::object({{"metric", objective.metric},
                       {"maximize", objective.direction == api::Direction::kMaximize},
                       {"goal", finite(objective.goal)}});
}

Json counts_data(const api::TrialCounts& counts) {
  return Json::object({{"created", counts.created},
                       {"running", counts.running + counts.pending},
                       {"completed", counts.completed},
                       {"stopped", counts.stopped},
                       {"failed", counts.failed},
                       {"infeasible", counts.infeasible}});
}

// Returns the noise of results and its effect on the best trial; null where results are exact.
Json expected_best_data(const std::optional<ExpectedBest>& best) {
  if (!best) return {};
  return Json::object({{"expected", finite(best->expected)},
                       {"noise", finite(best->noise)},
                       {"luckier", best->luckier ? Json(best->luckier->trial) : Json()}});
}

// [[step, value of each objective ...] ...]
Json curve_data(const api::StudySpec& spec, const api::Trial& trial) {
  Json out = Json::array();
  if (!trial.status.report) return out;
  for (const api::HistoryPoint& point : api::curve_of(*trial.status.report)) {
    Json::Array row = {point.step};
    for (const api::Objective& objective : spec.objectives) {
      const auto found = point.metrics.find(objective.metric);
      row.push_back(found == point.metrics.end() ? Json() : finite(found->second));
    }
    out.push_back(std::move(row));
  }
  return out;
}

// GPU-seconds of a run.
double gpu_seconds_of(const api::StudySpec& spec, const api::RunRecord& run, std::int64_t now_ms) {
  const double of_study = spec.trial.gpu ? core::gpus_per_worker(spec.trial) : 0;
  return core::worker_seconds(run, now_ms) * run.gpus.value_or(of_study);
}

// [[begin, end, outcome, GPU-seconds] ...]
Json runs_data(const RunView& view, const api::Trial& trial) {
  Json out = Json::array();
  const std::int64_t began = view.study.status.started_ms;
  for (const api::RunRecord& run : trial.status.runs) {
    const std::int64_t from = run.running_ms > 0 ? run.running_ms : run.started_ms;
    const std::int64_t to = run.ended_ms > 0 ? run.ended_ms : view.now_ms;
    out.push_back(Json::Array{from - began, std::max(to, from) - began,
                              run.outcome ? api::to_string(*run.outcome) : "Running",
                              finite(gpu_seconds_of(view.study.spec, run, view.now_ms))});
  }
  return out;
}

// Returns GPU metrics of the newest report, by the built-in trainer's names; empty without a
// report.
Json device_data(const api::Trial& trial) {
  namespace metric = api::metric;
  Json out = Json::object();
  if (!trial.status.report) return out;
  for (const char* name : {metric::kMfu, metric::kGpuUtilization, metric::kGpuMemory,
                           metric::kGpuPower, metric::kGpuEnergy}) {
    const auto found = trial.status.report->metrics.find(name);
    if (found != trial.status.report->metrics.end()) out.set(name, finite(found->second));
  }
  return out;
}

}  // namespace

Json study_data(const RunView& view) {
  const api::StudySpec& spec = view.study.spec;
  const api::StudyStatus& status = view.study.status;
  const std::optional<std::int64_t> planned = planned_trials(view.study);
  return Json::object(
      {{"name", view.study.metadata.name},
       {"state", state_of(view)},
       {"message", message_of(view.study)},
       {"algorithm", status.algorithm},
       {"earlyStopping", spec.early_stopping ? to_string(spec.early_stopping->name) : ""},
       {"unit", spec.resource.unit},
       {"maxStep", spec.resource.max},
       {"budget", planned ? Json(*planned) : Json()},
       {"parallelism", spec.budget.parallelism},
       {"counts", counts_data(status.trials)},
       {"gpuHours", finite(status.gpu_hours)},
       {"costUnit", spec.algorithm.cost_aware ? Json(cost_unit(spec)) : Json()},
       {"activeSeconds", finite(status.active_seconds)},
       {"tookSeconds", finite(elapsed_seconds(view))},
       {"begun", status.started_ms > 0 ? api::format_timestamp(status.started_ms) : std::string()},
       {"written", api::format_timestamp(view.now_ms)},
       {"parameters", Json::array_of(spec.parameters, parameter_data)},
       {"objectives", Json::array_of(spec.objectives, objective_data)},
       {"front", Json::array_of(status.best, &api::BestTrial::trial)},
       {"expectedBest", expected_best_data(view.expected_best)},
       {"time", time_spent_json(time_spent(view))}});
}

Json volumes_data(const RunView& view) {
  return Json::array_of(core::hypervolume_over_time(view.study, view.trials),
                        [](const core::VolumePoint& point) {
                          return Json(Json::Array{point.results, finite(point.volume)});
                        });
}

Json trial_data(const RunView& view, const api::Trial& trial, const Expectation* expected) {
  const api::StudySpec& spec = view.study.spec;
  Json values = Json::array();
  for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
    values.push_back(finite(objective_now(spec, trial, i)));
  }
  const api::Fact* end = core::newest_end(trial);
  Json out = Json::object({{"name", trial.metadata.name},
                           {"index", trial.spec.index},
                           {"phase", api::to_string(trial.status.phase)},
                           {"step", trial.status.report ? trial.status.report->step : 0},
                           {"values", std::move(values)},
                           {"infeasible", end != nullptr && end->infeasible},
                           {"parameters", trial.spec.parameters},
                           {"basis", trial.spec.search.basis},
                           {"seconds", finite(running_seconds(trial, view.now_ms))},
                           {"curve", curve_data(spec, trial)},
                           {"runs", runs_data(view, trial)},
                           {"device", device_data(trial)}});
  if (end != nullptr) {
    out.set("seq", end->seq).set("endedAt", end->at_ms - view.study.status.started_ms);
  }
  if (const auto cost = recorded_cost(trial)) out.set("cost", finite(*cost));
  if (core::is_replicate(trial)) out.set("repeats", trial.spec.search.replicates);
  const std::string ending = ending_of(trial);
  if (!ending.empty()) out.set("ending", ending);
  if (trial.spec.stop) out.set("stopReason", trial.spec.stop->reason);
  if (expected != nullptr) {
    out.set("expected", Json::object({{"mean", finite(expected->mean)},
                                      {"deviation", finite(expected->deviation)},
                                      {"beats", expected->beats},
                                      {"trials", static_cast<std::int64_t>(expected->trials)}}));
  }
  return out;
}

Json insights_data(const RunView& view) {
  Json insights = Json::array();
  for (std::size_t i = 0; i < view.study.spec.objectives.size(); ++i) {
    insights.push_back(insight_data(view, i));
  }
  return insights;
}

Json page_data(const RunView& view) {
  const std::map<std::int64_t, Expectation> expectations = expectations_of(view);
  Json trials = Json::array();
  for (const api::TrialPtr& trial : view.trials) {
    const auto expected = expectations.find(trial->spec.index);
    trials.push_back(
        trial_data(view, *trial, expected == expectations.end() ? nullptr : &expected->second));
  }
  return Json::object({{"study", study_data(view)},
                       {"trials", std::move(trials)},
                       {"insights", insights_data(view)},
                       {"volumes", volumes_data(view)}});
}

}  // namespace fettle::cli
