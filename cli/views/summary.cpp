#include "cli/views/summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "api/study/parameter_env.h"
#include "api/study/resolve.h"
#include "api/trainer/trainer_json.h"
#include "api/trial/metric_names.h"
#include "api/yaml/yaml_text.h"
#include "cli/views/repeated_reasons.h"
#include "cli/views/replicates.h"
#include "cli/views/time_spent.h"

namespace fettle::cli {
namespace {

constexpr std::size_t kMostReasons = 5;
constexpr int kReasonColumns = 400;
constexpr std::size_t kMostOfFront = 10;

// Removes members of `config` that equal their defaults, which a document may leave out.
void remove_defaults(Json& config, const Json& defaults) {
  if (!config.is_object()) return;
  Json::Object kept;
  for (auto& [key, value] : config.as_object()) {
    const Json* usual = defaults.find(key);
    if (value.is_null() || (usual != nullptr && *usual == value)) continue;
    if (usual != nullptr) remove_defaults(value, *usual);
    kept.emplace_back(key, std::move(value));
  }
  config.as_object() = std::move(kept);
}

// Returns the trainer's configuration with the parameters written in; null for a template.
Json best_trainer(const RunView& view, const api::BestTrial& best) {
  if (!view.study.spec.trial.trainer) return {};
  const auto config = api::resolve_trainer(view.study.spec, best.parameters);
  if (!config) return {};
  Json document = api::write_trainer_config(*config);
  remove_defaults(document, api::write_trainer_config(api::TrainerConfig{}));
  return document;
}

// Returns the parameters and, for the built-in trainer, the configuration that results from them.
std::string configuration_yaml(const RunView& view, const api::BestTrial& best, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string text = margin + "parameters:\n" + api::to_yaml(best.parameters, indent + 2);
  const Json trainer = best_trainer(view, best);
  if (!trainer.is_null()) text += margin + "trainer:\n" + api::to_yaml(trainer, indent + 2);
  return text;
}

// Returns "digits-0 at epoch 9" of "accuracy 0.9012, digits-0 at epoch 9".
std::string place_of(const RunView& view, const api::BestTrial& best) {
  return best.trial + at_step(view.study.spec, best.step);
}

// "accuracy 0.912"; where results are noisy "accuracy 0.912 measured, 0.905 expected".
std::string value_text(const RunView& view, const api::BestTrial& best) {
  std::string text = objectives_text(view.study.spec, best);
  if (!view.expected_best) return text;
  return text + " measured, " + format_number(view.expected_best->expected) + " expected";
}

// Why the best trial is not the one with the best value; "" where it is.
std::string luck_text(const RunView& view) {
  if (!view.expected_best || !view.expected_best->luckier) return "";
  const api::BestTrial& luckier = *view.expected_best->luckier;
  return luckier.trial + " measured " + format_number(luckier.objectives.front()) +
         ", but results vary by " + format_number(view.expected_best->noise) +
         " for the same parameters";
}

// "1,234 trials: 3 completed, ..."
std::string counts_text(const RunView& view) {
  const api::TrialCounts& counts = view.study.status.trials;
  const std::int64_t paused = std::ranges::count_if(
      view.trials, [](const api::TrialPtr& trial) { return has_paused(*trial); });
  std::string text = plural(counts.created, "trial");
  if (counts.replicates > 0) {
    text += ", " + format_count(counts.replicates) + " of them " +
            (counts.replicates == 1 ? "a replicate" : "replicates");
  }
  text += ": " + format_count(counts.completed) + " completed, " + format_count(counts.stopped) +
          " stopped early" +
          (paused > 0 ? " (" + format_count(paused) + " paused at a rung)" : "") + ", " +
          format_count(counts.failed) + " failed";
  if (counts.infeasible > 0) text += ", " + format_count(counts.infeasible) + " infeasible";
  if (counts.running + counts.pending > 0) {
    text += ", " + format_count(counts.running + counts.pending) + " still to end";
  }
  return text;
}

// Shortens reasons of failed trials, which stand further down.
std::string without_known_reasons(const RunView& view, const std::string& message) {
  RepeatedReasons reasons;
  for (const api::TrialPtr& trial : view.trials) {
    if (trial->status.phase != api::TrialPhase::kFailed) continue;
    (void)reasons.shorten(trial->metadata.name, printable(ending_of(*trial)));
  }
  return reasons.shorten("", message);
}

std::string outcome_text(const RunView& view, const Style& style) {
  const std::string state = state_of(view);
  const api::StatusCondition* condition = true_condition(view.study, "Succeeded");
  if (condition == nullptr) condition = true_condition(view.study, "Failed");
  const Ink ink = state == "succeeded" ? Ink::kGood : state == "failed" ? Ink::kBad : Ink::kBold;
  Line line = {{printable(view.study.metadata.name), Ink::kBold}, {" " + state, ink}};
  const api::StudyStatus& status = view.study.status;
  if (status.ended_ms > status.started_ms && status.started_ms > 0) {
    const auto took = static_cast<double>(status.ended_ms - status.started_ms) / 1000;
    line.push_back({" after " + format_elapsed(took)});
  }
  if (condition != nullptr && !condition->message.empty()) {
    line.push_back({": " + without_known_reasons(view, printable(condition->message))});
  }
  return render_line(line, kAnyWidth, style) + '\n' + counts_text(view) + '\n';
}

std::string front_text(const RunView& view) {
  const auto& front = view.study.status.best;
  if (front.size() < 2) return "";
  std::string text = "\nThe Pareto front has " + plural(std::ssize(front), "trial");
  const std::optional<double>& volume = view.study.status.hypervolume;
  if (volume) text += " and a hypervolume of " + format_number(*volume);
  text += ":\n";
  for (std::size_t i = 0; i < front.size() && i < kMostOfFront; ++i) {
    text += "  " + front[i].trial + "  " + objectives_text(view.study.spec, front[i]) + '\n';
  }
  if (front.size() > kMostOfFront) {
    text += "  and " + std::to_string(front.size() - kMostOfFront) + " more\n";
  }
  return text;
}

// Whether the built-in trainer reports the metric, and no objective uses it.
bool is_unseen(const std::string& metric, const api::StudySpec& spec) {
  return spec.trial.trainer &&
         std::ranges::none_of(spec.objectives, [&](const api::Objective& objective) {
           return objective.metric == metric;
         });
}

// A line of its own, or nothing.
std::string indented(const std::string& margin, const std::string& text) {
  return text.empty() ? "" : margin + text + '\n';
}

std::string best_text(const RunView& view, const Style& style) {
  if (view.study.status.best.empty()) return "";
  const api::BestTrial& best = view.study.status.best.front();
  const bool is_front = view.study.status.best.size() > 1;  // the best by its first objective
  const std::string label =
      is_front ? "Best by " + printable(view.study.spec.objectives.front().metric) + ": "
               : "Best: ";
  std::string text =
      "\n" +
      render_line({{label}, {value_text(view, best), Ink::kGood}, {", " + place_of(view, best)}},
                  kAnyWidth, style) +
      '\n';
  text += indented("      ", luck_text(view)) + indented("      ", replicates_text(best));
  const api::Trial* trial = find_trial(view.trials, best.trial);
  const auto tested =
      trial != nullptr ? metric_of(*trial, api::metric::kTestAccuracy) : std::nullopt;
  if (tested && is_unseen(api::metric::kTestAccuracy, view.study.spec)) {
    text +=
        "      " + format_number(*tested) + " accuracy on the test images, which no decision saw\n";
  }
  text += front_text(view);
  text += "\nThe best configuration, ready to paste:\n\n" + configuration_yaml(view, best, 2);
  return text;
}

std::string failures_text(const RunView& view, const LogHint& log) {
  const std::vector<FailureGroup> groups = group_failures(view, log);
  if (groups.empty()) return "";
  std::string text = "\nWhat failed:\n";
  for (std::size_t i = 0; i < groups.size() && i < kMostReasons; ++i) {
    text += "  " + plural(groups[i].trials, "trial") + ": " +
            shortened(groups[i].reason, kReasonColumns) + '\n';
    if (!groups[i].log.empty()) text += "    log: " + groups[i].log + '\n';
  }
  if (groups.size() > kMostReasons) {
    text += "  and " +
            plural(static_cast<std::int64_t>(groups.size() - kMostReasons), "other reason") + '\n';
  }
  return text;
}

std::string hints_text(const RunView& view, const std::string& program) {
  const std::string& study = view.study.metadata.name;
  std::string text = "\nMore: " + program + " trials " + study;
  if (!view.study.status.best.empty()) {
    text += "; " + program + " logs " + view.study.status.best.front().trial;
  }
  return text + "; " + program + " status " + study + '\n';
}

Json counts_json(const api::TrialCounts& counts) {
  return Json::object({{"created", counts.created},
                       {"completed", counts.completed},
                       {"stopped", counts.stopped},
                       {"failed", counts.failed},
                       {"infeasible", counts.infeasible},
                       {"pending", counts.pending},
                       {"running", counts.running},
                       {"replicates", counts.replicates}});
}

Json best_trial_json(const RunView& view, const api::BestTrial& best) {
  Json objectives = Json::object();
  for (std::size_t i = 0; i < best.objectives.size() && i < view.study.spec.objectives.size();
       ++i) {
    objectives.set(view.study.spec.objectives[i].metric, best.objectives[i]);
  }
  Json json = Json::object({{"trial", best.trial}, {"step", best.step}});
  json.set("objective", best.objectives.empty() ? Json() : Json(best.objectives[0]));
  json.set("objectives", objectives);
  json.set("parameters", best.parameters);
  if (best.replicates) json.set("replicates", replicates_json(*best.replicates));
  const api::Trial* trial = find_trial(view.trials, best.trial);
  if (trial != nullptr && trial->status.report) {
    Json metrics = Json::object();
    for (const auto& [name, value] : trial->status.report->metrics) metrics.set(name, value);
    json.set("metrics", std::move(metrics));
  }
  Json trainer = best_trainer(view, best);
  if (!trainer.is_null()) json.set("trainer", std::move(trainer));
  return json;
}

Json failure_json(const FailureGroup& group) {
  return Json::object({{"reason", group.reason}, {"trials", group.trials}, {"log", group.log}});
}

}  // namespace

std::vector<FailureGroup> group_failures(const RunView& view, const LogHint& log) {
  std::vector<FailureGroup> groups;
  std::map<std::string, std::size_t> index;
  for (const api::TrialPtr& trial : view.trials) {
    if (trial->status.phase != api::TrialPhase::kFailed) continue;
    const std::string reason = printable(ending_of(*trial));
    const auto [at, is_new] = index.emplace(without_numbers(reason), groups.size());
    if (is_new) {
      const api::RunRecord* run = newest_run(*trial);
      groups.push_back({reason, 0, run != nullptr ? log(trial->metadata.name, run->run) : ""});
    }
    ++groups[at->second].trials;
  }
  std::ranges::stable_sort(groups, std::greater(), &FailureGroup::trials);
  return groups;
}

std::string render_summary(const RunView& view, const LogHint& log, const std::string& program,
                           const Style& style) {
  std::string text = outcome_text(view, style) + best_text(view, style);
  const std::string times = render_time_spent(time_spent(view), style);
  if (!times.empty()) text += '\n' + times;
  return text + failures_text(view, log) + hints_text(view, program);
}

std::string best_yaml(const RunView& view) {
  const api::BestTrial& best = view.study.status.best.front();
  return "# " + value_text(view, best) + ": " + place_of(view, best) + '\n' +
         indented("# ", luck_text(view)) + indented("# ", replicates_text(best)) +
         configuration_yaml(view, best, 0);
}

std::string best_env(const RunView& view) {
  std::string text;
  for (const auto& [name, value] : view.study.status.best.front().parameters.as_object()) {
    text += "export " + api::parameter_env_name(name) + '=' +
            shell_word(api::parameter_env_value(value)) + '\n';
  }
  return text;
}

Json best_json(const RunView& view) {
  Json json = best_trial_json(view, view.study.status.best.front());
  if (!view.expected_best) return json;
  json.set("expected", view.expected_best->expected);
  json.set("noise", view.expected_best->noise);
  if (view.expected_best->luckier) {
    const api::BestTrial& luckier = *view.expected_best->luckier;
    json.set("luckier",
             Json::object({{"trial", luckier.trial}, {"objective", luckier.objectives.front()}}));
  }
  return json;
}

Json summary_json(const RunView& view, const LogHint& log) {
  const api::StatusCondition* condition = true_condition(view.study, "Succeeded");
  if (condition == nullptr) condition = true_condition(view.study, "Failed");
  Json json = Json::object({{"study", view.study.metadata.name}, {"state", state_of(view)}});
  json.set("reason", condition != nullptr ? condition->reason : "");
  json.set("message", condition != nullptr ? condition->message : "");
  json.set("trials", counts_json(view.study.status.trials));
  const auto& front = view.study.status.best;
  json.set("best", front.empty() ? Json() : best_json(view));
  if (front.size() > 1) {
    json.set("front", Json::array_of(front, [&](const api::BestTrial& best) {
               return best_trial_json(view, best);
             }));
  }
  const std::optional<double>& volume = view.study.status.hypervolume;
  if (volume) json.set("hypervolume", *volume);
  json.set("time", time_spent_json(time_spent(view)));
  return json.set("failures", Json::array_of(group_failures(view, log), failure_json));
}

}  // namespace fettle::cli
