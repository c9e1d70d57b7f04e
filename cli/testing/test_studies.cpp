#include "cli/testing/test_studies.h"

#include <memory>
#include <utility>

namespace fettle::cli {
namespace {

using api::Outcome;
using api::TrialPhase;

api::Study study() {
  api::Objective accuracy;
  accuracy.metric = "accuracy";
  accuracy.direction = api::Direction::kMaximize;
  api::Parameter learning_rate;
  learning_rate.name = "learning_rate";
  api::Parameter optimizer;
  optimizer.name = "optimizer";
  optimizer.type = api::ParameterType::kCategorical;
  optimizer.values = {"sgd", "adam"};
  api::Study study;
  study.metadata.name = "digits";
  study.metadata.created_ms = kStartMs;
  study.spec.objectives = {accuracy};
  study.spec.parameters = {learning_rate, optimizer};
  study.spec.resource.max = 9;
  study.spec.budget.trials = 10;
  study.spec.budget.parallelism = 2;
  study.spec.budget.wall_time = 7200;
  study.status.started_ms = kStartMs;
  return study;
}

api::Trial trial(std::int64_t index, double learning_rate, const char* optimizer) {
  api::Trial trial;
  trial.metadata.name = "digits-" + std::to_string(index);
  trial.metadata.created_ms = kStartMs + index * 1000;
  trial.spec.study = "digits";
  trial.spec.index = index;
  trial.spec.until_step = 9;
  trial.spec.parameters =
      Json::object({{"learning_rate", learning_rate}, {"optimizer", optimizer}});
  return trial;
}

// One run from `begin` to `end` seconds after the study's start; end 0: it is running.
void add_run(api::Trial& trial, double begin, double end, std::optional<Outcome> outcome,
             std::string message = "") {
  api::RunRecord run;
  run.run = static_cast<std::int64_t>(trial.status.runs.size());
  run.started_ms = kStartMs + static_cast<std::int64_t>(begin * 1000);
  run.running_ms = run.started_ms + 100;
  run.ended_ms = end > 0 ? kStartMs + static_cast<std::int64_t>(end * 1000) : 0;
  run.outcome = outcome;
  run.message = std::move(message);
  trial.status.runs.push_back(std::move(run));
}

void report(api::Trial& trial, std::int64_t step, double accuracy) {
  api::Report report;
  report.step = step;
  report.metrics = {{"accuracy", accuracy},
                    {"test_accuracy", accuracy - 0.01},
                    {"images_per_second", 4120.4},
                    {"data_wait", 0.1}};
  trial.status.report = report;
}

void add_fact(api::Trial& trial, std::int64_t seq, api::FactKind kind, double value, double at) {
  api::Fact fact;
  fact.seq = seq;
  fact.kind = kind;
  fact.step = trial.status.report ? trial.status.report->step : 0;
  fact.values = {value};
  fact.at_ms = kStartMs + static_cast<std::int64_t>(at * 1000);
  trial.status.facts.push_back(fact);
}

api::Trial completed() {
  api::Trial best = trial(0, 0.0123, "sgd");
  add_run(best, 0, 30, Outcome::kSucceeded);
  report(best, 9, 0.9012);
  add_fact(best, 1, api::FactKind::kResult, 0.9012, 30);
  best.status.phase = TrialPhase::kCompleted;
  return best;
}

api::Trial stopped() {
  api::Trial poor = trial(1, 0.0001, "sgd");
  add_run(poor, 0, 12, Outcome::kStopped);
  report(poor, 3, 0.5);
  poor.spec.stop = api::Stop{"EarlyStopped", "asha: rung 1 (step 3): 0.5 is not among the best", 0};
  add_fact(poor, 2, api::FactKind::kStopped, 0.5, 12);
  poor.status.phase = TrialPhase::kStopped;
  return poor;
}

api::Trial failed() {
  api::Trial broken = trial(2, 0.1, "adam");
  add_run(broken, 12, 14, Outcome::kFailed, "exit code 3: cannot open \x1b[31mdata");
  add_fact(broken, 3, api::FactKind::kFailed, 0, 14);
  broken.status.phase = TrialPhase::kFailed;
  return broken;
}

api::Trial running(std::int64_t index, std::int64_t step, double accuracy) {
  api::Trial going = trial(index, 0.002, "adam");
  add_run(going, 40, 0, std::nullopt);
  if (step > 0) report(going, step, accuracy);
  going.status.phase = TrialPhase::kRunning;
  return going;
}

void add(RunView& view, api::Trial trial) {
  view.trials.push_back(std::make_shared<const api::Trial>(std::move(trial)));
}

RunView ended_trials() {
  RunView view;
  view.study = study();
  add(view, completed());
  add(view, stopped());
  add(view, failed());
  view.now_ms = kStartMs + 60'000;
  return view;
}

}  // namespace

RunView view_in_the_middle() {
  RunView view = ended_trials();
  add(view, running(3, 4, 0.8712));
  add(view, running(4, 0, 0));
  bring_up_to_date(view);
  return view;
}

RunView view_at_the_end() {
  RunView view = ended_trials();
  bring_up_to_date(view);
  view.study.status.active_seconds = 30;
  view.study.status.ended_ms = kStartMs + 30'500;
  view.study.status.conditions = {{"Succeeded", true, "TrialsDone", "all 3 trials are done"},
                                  {"Ready", true, "TrialsDone", "all 3 trials are done"}};
  return view;
}

}  // namespace fettle::cli
