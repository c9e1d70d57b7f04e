// Writes one line for each action. The tables do not check what a line omits (times, uids).
#include "core/testing/plan_text.h"

#include "api/fields/enum_names.h"
#include "api/fields/quantity.h"
#include "api/study/study.h"
#include "api/trial/display.h"
#include "api/trial/trial.h"
#include "core/conditions.h"
#include "core/readiness.h"

namespace fettle::core {

namespace {

std::string seconds(std::int64_t ms) { return Json(static_cast<double>(ms) / 1000).dump(); }

std::string text_of(const EventNote& event) {
  if (event.type == EventType::kNormal) return "event " + event.reason;
  return "warning " + event.reason + ": " + event.message;
}

std::string text_of(const api::Fact& fact) {
  std::string text = std::to_string(fact.seq) + " " + std::string(api::to_string(fact.kind)) +
                     " at " + std::to_string(fact.step);
  for (const auto& value : fact.values) text += " " + (value ? Json(*value).dump() : "none");
  if (fact.cost) text += " cost " + Json(*fact.cost).dump();
  return text + (fact.infeasible ? " infeasible" : "");
}

std::string text_of(const api::RunRecord& record) {
  std::string text = "r" + std::to_string(record.run) + " ";
  if (record.outcome) {
    text += api::to_string(*record.outcome);
  } else if (record.stopping) {
    text += "stopping " + std::string(api::to_string(*record.stopping));
  } else {
    text += record.running_ms != 0 ? "running" : "open";
  }
  if (!record.resizes.empty()) {
    text += " with " + std::to_string(record.resizes.back().workers) + " workers";
  }
  if (record.gpus) text += " on " + Json(*record.gpus).dump() + " GPU";
  if (!record.pod_uid.empty()) text += " in " + record.pod_uid;
  return text + (record.message.empty() ? "" : " (" + record.message + ")");
}

std::string counts_of(const api::TrialCounts& counts) {
  std::string text;
  const auto add = [&text](std::int64_t count, const char* name) {
    if (count == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  };
  add(counts.pending, "pending");
  add(counts.running, "running");
  add(counts.completed, "completed");
  add(counts.stopped, "stopped");
  add(counts.failed, "failed");
  add(counts.infeasible, "infeasible");
  return text;
}

// Whether the reason alone does not identify the ending: a failure, or an end short of the last
// step.
bool needs_message(const api::StatusCondition& condition) {
  return condition.type == "Failed" || condition.reason == kShortOfUntilStep ||
         condition.message.find("; no trial reported") != std::string::npos;
}

// "Succeeded(GoalReached)"; with its message if needs_message().
std::string text_of(const std::vector<api::StatusCondition>& conditions) {
  std::string text;
  for (const api::StatusCondition& condition : conditions) {
    if (!condition.status || is_readiness(condition)) continue;
    text += (text.empty() ? "" : " ") + condition.type + "(" + condition.reason +
            (needs_message(condition) ? ": " + condition.message : "") + ")";
  }
  return text;
}

// ", again 0.85 +- 0.05 in 2, 1 failed"
std::string text_of(const api::ReplicateResults& results) {
  std::string text = ", again";
  if (results.mean) text += " " + api::short_number(*results.mean);
  if (results.deviation) text += " +- " + api::short_number(*results.deviation);
  text += " in " + std::to_string(results.runs);
  return text + (results.failed > 0 ? ", " + std::to_string(results.failed) + " failed" : "");
}

std::string text_of(const api::StudyStatus& status) {
  std::string text = "status " + text_of(status.conditions) + " " + status.progress;
  const std::string counts = counts_of(status.trials);
  if (!counts.empty()) text += ": " + counts;
  for (std::size_t i = 0; i < status.best.size(); ++i) {
    text += (i == 0 ? "; best " : ", ") + status.best[i].trial;
    for (const double value : status.best[i].objectives) text += " " + Json(value).dump();
    if (status.best[i].replicates) text += text_of(*status.best[i].replicates);
  }
  if (status.gpu) {
    text += "; GPUs of " + status.gpu->profile;
    if (status.gpu_hours > 0) text += ", " + api::short_number(status.gpu_hours) + " GPU-hours";
  }
  if (status.hypervolume) text += "; hypervolume " + Json(*status.hypervolume).dump();
  return text;
}

std::string text_of(const api::TrialStatus& status) {
  std::string text = "status " + std::string(api::to_string(status.phase));
  for (std::size_t i = 0; i < status.runs.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + text_of(status.runs[i]);
  }
  if (status.report) text += "; report " + std::to_string(status.report->step);
  const std::string conditions = text_of(status.conditions);
  return conditions.empty() ? text : text + "; " + conditions;
}

// The memory request; "" unless trials request memory.
std::string gpu_text(const api::TrialSpec& spec) {
  return spec.gpu_memory ? " with " + api::format_quantity(*spec.gpu_memory) : "";
}

std::string text_of(const UpdateTrialSpec& update) {
  const api::TrialSpec& spec = update.spec;
  if (spec.stop) {
    return "stop " + update.trial + ": " + spec.stop->reason + ", basis " +
           std::to_string(spec.stop->basis);
  }
  if (update.promotion) {
    return "promote " + update.trial + " until " + std::to_string(spec.until_step) + ", basis " +
           std::to_string(spec.search.promotions.back().basis);
  }
  if (update.resize) {
    return "size " + update.trial + " to " + std::to_string(spec.workers) +
           (spec.sizing->no_room_after ? ", no room" : "");
  }
  return (spec.suspend ? "suspend " : "resume ") + update.trial + gpu_text(spec);
}

struct ActionText {
  std::string operator()(const RecordFacts& action) const {
    std::string text = "facts " + action.trial + ": ";
    for (std::size_t i = 0; i < action.facts.size(); ++i) {
      text += (i == 0 ? "" : ", ") + text_of(action.facts[i]);
    }
    return text;
  }
  std::string operator()(const UpdateTrialSpec& action) const { return text_of(action); }
  std::string operator()(const CreateTrial& action) const {
    const api::TrialSpec& spec = action.trial.spec;
    std::string text = "create " + action.trial.metadata.name + " " + spec.parameters.dump();
    if (spec.parent)
      text += " from " + spec.parent->trial + " at " + std::to_string(spec.parent->step);
    text += " until " + std::to_string(spec.until_step) + gpu_text(spec);
    if (!spec.search.replicates.empty()) text += " again as " + spec.search.replicates;
    if (!spec.search.replaces.empty()) text += " for " + spec.search.replaces;
    return text + ", basis " + std::to_string(spec.search.basis);
  }
  std::string operator()(const UpdateStudyStatus& action) const { return text_of(action.status); }
  std::string operator()(const DeleteStudy&) const { return "delete the Study"; }
  std::string operator()(const UpdateTrialStatus& action) const { return text_of(action.status); }
  std::string operator()(const StartRun& action) const {
    return "start r" + std::to_string(action.run) + (action.confirm ? ", confirmed" : "");
  }
  std::string operator()(const ResizeRun& action) const {
    return "resize r" + std::to_string(action.run) + " to " + std::to_string(action.workers);
  }
  std::string operator()(const StopRun& action) const {
    return "stop r" + std::to_string(action.run);
  }
  std::string operator()(const DeleteRun& action) const {
    return "delete r" + std::to_string(action.run);
  }
  std::string operator()(const Note& action) const { return text_of(action.event); }
};

template <class Plan>
std::vector<std::string> to_lines(const Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& action : plan.actions) lines.push_back(std::visit(ActionText{}, action));
  if (plan.wake_at_ms) lines.push_back("wake at " + seconds(*plan.wake_at_ms));
  return lines;
}

}  // namespace

std::vector<std::string> lines_of(const StudyPlan& plan) { return to_lines(plan); }
std::vector<std::string> lines_of(const TrialPlan& plan) { return to_lines(plan); }

}  // namespace fettle::core
