#include "cli/exchange/document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "api/study/study_json.h"
#include "api/trial/trial_json.h"

namespace fettle::cli {
namespace {

// A time that has not come is null.
Json time_json(std::int64_t at_ms) { return at_ms > 0 ? Json(at_ms) : Json(); }

Json values_json(const RunView& view, const api::Trial& trial) {
  Json values = Json::object();
  for (std::size_t i = 0; i < view.study.spec.objectives.size(); ++i) {
    std::optional<double> value = objective_now(view.study.spec, trial, i);
    if (value && !std::isfinite(*value)) value.reset();
    values.set(view.study.spec.objectives[i].metric, value);
  }
  return values;
}

// The points that the newest report kept, and the report itself, by step.
Json curve_json(const api::Trial& trial) {
  std::map<std::int64_t, Json> points;
  const auto add = [&points](std::int64_t step, const std::map<std::string, double>& metrics) {
    Json& point = points.try_emplace(step, Json::object()).first->second;
    for (const auto& [name, value] : metrics) point.set(name, value);
  };
  if (trial.status.report) {
    for (const api::HistoryPoint& point : trial.status.report->history) {
      add(point.step, point.metrics);
    }
    add(trial.status.report->step, trial.status.report->metrics);
  }
  Json curve = Json::array();
  for (auto& [step, metrics] : points) {
    curve.push_back(Json::object({{"step", step}, {"metrics", std::move(metrics)}}));
  }
  return curve;
}

std::int64_t started_ms(const api::Trial& trial) {
  if (trial.status.runs.empty()) return 0;
  const api::RunRecord& first = trial.status.runs.front();
  return first.running_ms > 0 ? first.running_ms : first.started_ms;
}

// Zero while the trial may continue.
std::int64_t ended_ms(const api::Trial& trial) {
  const api::RunRecord* const run = newest_run(trial);
  return run != nullptr && api::is_terminal(trial.status.phase) ? run->ended_ms : 0;
}

Json trial_json(const RunView& view, const api::Trial& trial) {
  Json json = Json::object({{"name", trial.metadata.name},
                            {"uid", trial.metadata.uid},
                            {"index", trial.spec.index},
                            {"phase", phase_of(view, trial)},
                            {"parameters", trial.spec.parameters},
                            {"values", values_json(view, trial)},
                            {"infeasible", ended_infeasible(trial)}});
  json.set("step", trial.status.report ? Json(trial.status.report->step) : Json());
  json.set("startedMs", time_json(started_ms(trial)));
  json.set("endedMs", time_json(ended_ms(trial)));
  json.set("seconds", running_seconds(trial, view.now_ms));
  json.set("message", ending_of(trial));
  json.set("curve", curve_json(trial));
  json.set("spec", api::write_trial_spec(trial.spec));
  return json.set("status", api::write_trial_status(trial.status));
}

}  // namespace

Json export_document(const RunView& view) {
  const api::Study& study = view.study;
  Json json = Json::object({{"version", kExportVersion},
                            {"program", "fettle " FETTLE_VERSION},
                            {"exportedMs", view.now_ms},
                            {"name", study.metadata.name},
                            {"namespace", study.metadata.ns},
                            {"uid", study.metadata.uid},
                            {"createdMs", time_json(study.metadata.created_ms)},
                            {"state", state_of(view)}});
  json.set("startedMs", time_json(study.status.started_ms));
  json.set("endedMs", time_json(study.status.ended_ms));
  json.set("spec", api::write_study_spec(study.spec));
  json.set("status", api::write_study_status(study.status));
  json.set("trials", Json::array_of(view.trials, [&](const api::TrialPtr& trial) {
             return trial_json(view, *trial);
           }));
  return json.set("events", Json::array_of(view.timeline, &TimelineEntry::data));
}

}  // namespace fettle::cli
