#include "cli/serve/feeds/study_list.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "cli/views/reason.h"

namespace fettle::cli {
namespace {

Json time_or_null(std::int64_t at_ms) { return at_ms > 0 ? Json(at_ms) : Json(); }

// At most kMostSteps: the first, the last and others between them.
Json steps_json(const RunView& view, const std::vector<TrialResult>& results) {
  std::vector<Json> steps;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const TrialResult& result = results[i];
    if (!result.best_so_far || !std::isfinite(result.value)) continue;
    steps.emplace_back(Json::Array{static_cast<std::int64_t>(i + 1),
                                   result.at_ms - view.study.status.started_ms, result.value});
  }
  Json::Array kept;
  const std::size_t stride = (steps.size() + StudyList::kMostSteps - 1) / StudyList::kMostSteps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % std::max<std::size_t>(stride, 1) == 0 || i + 1 == steps.size()) {
      kept.push_back(std::move(steps[i]));
    }
  }
  return kept;
}

Json best_json_of(const RunView& view) {
  if (view.study.status.best.empty()) return {};
  const api::BestTrial& best = view.study.status.best.front();
  const bool has_value = !best.objectives.empty() && std::isfinite(best.objectives.front());
  return Json::object({{"trial", best.trial},
                       {"value", has_value ? Json(best.objectives.front()) : Json()},
                       {"parameters", best.parameters}});
}

Json trials_json(const RunView& view) {
  const api::TrialCounts& counts = view.study.status.trials;
  const auto running = std::ranges::count_if(view.trials, [](const api::TrialPtr& trial) {
    return trial->status.phase == api::TrialPhase::kRunning;
  });
  return Json::object({{"created", counts.created},
                       {"running", view.interrupted ? 0 : static_cast<std::int64_t>(running)},
                       {"completed", counts.completed},
                       {"stopped", counts.stopped},
                       {"failed", counts.failed},
                       {"infeasible", counts.infeasible}});
}

}  // namespace

Json list_row(const RunView& view) {
  const api::StudySpec& spec = view.study.spec;
  const api::StudyStatus& status = view.study.status;
  const std::vector<TrialResult> results = results_in_order(spec, view.trials);
  double cost = 0;
  for (const api::TrialPtr& trial : view.trials) cost += recorded_cost(*trial).value_or(0);
  Json row = Json::object({{"name", view.study.metadata.name},
                           {"uid", view.study.metadata.uid},
                           {"state", state_of(view)},
                           {"message", message_of(view.study)},
                           {"begunMs", time_or_null(status.started_ms)},
                           {"endedMs", time_or_null(status.ended_ms)},
                           {"createdMs", time_or_null(view.study.metadata.created_ms)}});
  if (!spec.objectives.empty()) {
    row.set(
        "objective",
        Json::object({{"metric", spec.objectives[0].metric},
                      {"maximize", spec.objectives[0].direction == api::Direction::kMaximize}}));
  }
  row.set("objectives", static_cast<std::int64_t>(spec.objectives.size()))
      .set("best", best_json_of(view))
      .set("results", static_cast<std::int64_t>(results.size()))
      .set("steps", steps_json(view, results))
      .set("trials", trials_json(view))
      .set("budget", planned_trials(view.study))
      .set("gpuHours", std::isfinite(status.gpu_hours) ? Json(status.gpu_hours) : Json())
      .set("cost", spec.algorithm.cost_aware && std::isfinite(cost) ? Json(cost) : Json())
      .set("costUnit", spec.algorithm.cost_aware ? Json(cost_unit(spec)) : Json())
      .set("activeSeconds",
           std::isfinite(status.active_seconds) ? Json(status.active_seconds) : Json());
  return row;
}

Status StudyList::update(StudySource& source) {
  FETTLE_ASSIGN(const std::vector<StudyMark> marks, source.marks());
  behind_ = false;
  std::set<std::string> there;
  std::size_t reads = 0;
  for (const StudyMark& mark : marks) {
    if (!only_.empty() && std::ranges::find(only_, mark.name) == only_.end()) continue;
    there.insert(mark.name);
    const auto known = rows_.find(mark.name);
    if (known != rows_.end() && known->second.stamp == mark.stamp) continue;
    if (++reads > kMostReads) {
      behind_ = true;
      continue;
    }
    const auto seen = source.read(mark.name, Detail::kObjects);
    if (seen.ok()) {
      rows_[mark.name] = {mark.stamp, list_row(seen->view)};
    } else if (seen.error().code != ErrorCode::kNotFound) {  // else: deleted, or not begun yet
      rows_[mark.name] = {mark.stamp,
                          Json::object({{"name", mark.name}, {"error", seen.error().message}})};
    }
  }
  std::erase_if(rows_, [&](const auto& row) { return !there.contains(row.first); });
  return success();
}

}  // namespace fettle::cli
