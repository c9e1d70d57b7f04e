#include "cli/views/reason.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "cli/terminal/text.h"
#include "cli/views/replicates.h"
#include "core/facts/history.h"
#include "core/replay/replay.h"
#include "core/study/best.h"
#include "core/study/problem.h"

namespace fettle::cli {
namespace {

// Fits a new model for the expectations of all trials when the number of facts has grown by this
// factor, from at most this number of values: thousands of trials take about twenty fast fits.
constexpr double kRefit = 1.5;
constexpr std::size_t kExpectationSamples = 1000;

std::int64_t count_ended(const search::History& history) {
  std::set<std::int64_t> ended;
  for (const search::Event& event : history.events) {
    if (event.fact.kind != api::FactKind::kRung) ended.insert(event.trial);
  }
  return std::ssize(ended);
}

KnownBefore known_before(const api::StudySpec& spec, const search::History& history) {
  KnownBefore known{std::ssize(history.trials), count_ended(history), {}};
  for (const search::Event& event : history.events) {
    const api::Fact& fact = event.fact;
    const bool result = fact.kind == api::FactKind::kResult && !fact.infeasible;
    if (!result || fact.values.empty() || !fact.values[0]) continue;
    if (!known.best || core::is_better(spec.objectives[0], *fact.values[0], *known.best)) {
      known.best = fact.values[0];
    }
  }
  return known;
}

std::optional<Expectation> expect(const api::StudySpec& spec, const explain::Model& model,
                                  const Json& parameters) {
  const auto prediction = model.predict(parameters);
  if (!prediction) return std::nullopt;
  const double below = model.share_below(prediction->mean);
  const bool maximize = spec.objectives[0].direction == api::Direction::kMaximize;
  return Expectation{prediction->mean, prediction->deviation, maximize ? below : 1 - below,
                     model.trials()};
}

std::optional<Ranking> ranking_of(const RunView& view, const api::Trial& trial) {
  std::vector<TrialResult> results = results_in_order(view.study.spec, view.trials);
  std::erase_if(results, [](const TrialResult& result) { return result.is_replicate; });
  const auto own = std::ranges::find(results, trial.metadata.name, &TrialResult::trial);
  if (own == results.end()) return std::nullopt;
  const auto better = std::ranges::count_if(results, [&](const TrialResult& result) {
    return core::is_better(view.study.spec.objectives[0], result.value, own->value);
  });
  return Ranking{own->value, better + 1, std::ssize(results)};
}

std::string metric_text(const RunView& view, double value) {
  return printable(view.study.spec.objectives[0].metric) + ' ' + format_number(value);
}

std::string cost_text(const RunView& view, double cost) {
  return format_number(cost) + ' ' + cost_unit(view.study.spec);
}

std::string chosen_text(const RunView& view, const api::Trial& trial, const Reason& reason) {
  const KnownBefore& before = reason.before;
  if (core::is_replicate(trial)) {
    return "chosen    because it " + repeats_text(trial) +
           " with another seed: that led when the search was over (basis " +
           std::to_string(trial.spec.search.basis) + ")\n";
  }
  std::string text = "chosen    by " + reason.sampler + "\n            knowing " +
                     plural(before.ended, "result") + " of " + plural(before.trials, "trial") +
                     // The seq of the newest fact known then; replay decides from there.
                     " (basis " + std::to_string(trial.spec.search.basis) + ")\n";
  if (!reason.explanation) return text;
  const search::Explanation& explanation = *reason.explanation;
  text += "            " + printable(explanation.words);
  if (explanation.acquisition) text += ": " + format_number(*explanation.acquisition);
  if (explanation.mean) {
    text += "; its model expected " + format_number(*explanation.mean);
    if (explanation.deviation) text += " ± " + format_number(*explanation.deviation);
  }
  if (explanation.cost) text += "; predicted cost: " + cost_text(view, *explanation.cost);
  return text + '\n';
}

std::string expected_text(const RunView& view, const Reason& reason) {
  if (!reason.expectation) {
    return "expected  nothing yet: that takes " + std::to_string(explain::kLeastTrials) +
           " trials with a value\n";
  }
  const Expectation& expected = *reason.expectation;
  std::string text = "expected  " + metric_text(view, expected.mean) + " ± " +
                     format_number(expected.deviation) + ", better than " +
                     format_number(std::round(expected.beats * 100)) +
                     " % of random points (a random forest over " +
                     plural(static_cast<std::int64_t>(expected.trials), "trial") + ")\n";
  if (reason.before.best) {
    text += "            the best until then was " + metric_text(view, *reason.before.best) + '\n';
  }
  return text;
}

std::string best_text(const RunView& view, const Reason& reason, const api::Trial& trial) {
  if (view.study.status.best.empty()) return "";
  const api::BestTrial& best = view.study.status.best.front();
  if (best.trial == trial.metadata.name) return ", the best of all";
  std::string text;
  if (reason.ranking) {
    text += ", number " + format_count(reason.ranking->rank) + " of " +
            plural(reason.ranking->of, "result");
  }
  return text + "; the best is " + best.trial + " with " + objectives_text(view.study.spec, best);
}

std::string came_text(const RunView& view, const api::Trial& trial, const Reason& reason) {
  std::string text = "came      ";
  const auto value = objective_now(view.study.spec, trial);
  text += value ? metric_text(view, *value) : "no value";
  if (trial.status.report) {
    const std::string at = at_step(view.study.spec, trial.status.report->step);
    if (!at.empty()) text += at + " of " + std::to_string(trial.spec.until_step);
  }
  text += " (" + std::string(api::to_string(trial.status.phase)) + ')';
  if (const auto cost = recorded_cost(trial)) text += " for " + cost_text(view, *cost);
  return text + best_text(view, reason, trial) + '\n';
}

// In a population: names the trial from whose weights it starts.
std::string parent_text(const RunView& view, const api::Trial& trial) {
  if (!trial.spec.parent) return "";
  return "  from      " + printable(view.study.spec.resource.unit) + ' ' +
         std::to_string(trial.spec.parent->step) + " of " + trial.spec.parent->trial +
         ", in the place of " + trial.spec.search.replaces + '\n';
}

std::string stopped_text(const api::Trial& trial) {
  if (trial.spec.stop) {
    return "stopped   " + trial.spec.stop->reason + ": " + printable(trial.spec.stop->message) +
           " (basis " + std::to_string(trial.spec.stop->basis) + ")\n";
  }
  const std::string ending = ending_of(trial);
  return ending.empty() ? "" : "failed    " + printable(ending) + '\n';
}

}  // namespace

Result<Reason> reason_of(const RunView& view, const api::Trial& trial) {
  const search::Problem problem = core::problem_of(view.study);
  FETTLE_ASSIGN(const std::unique_ptr<search::Sampler> sampler, search::make_sampler(problem));
  const search::History history = core::history_before(view.study, view.trials, trial.spec.index);
  Reason reason;
  reason.sampler = sampler->description();
  reason.before = known_before(view.study.spec, history);
  if (!core::is_replicate(trial)) {
    reason.explanation = sampler->explain(history, trial.spec.parameters);
  }
  const auto model = explain::Model::fit(problem, history, /*objective=*/0);
  if (model.ok()) reason.expectation = expect(view.study.spec, *model, trial.spec.parameters);
  reason.ranking = ranking_of(view, trial);
  return reason;
}

std::map<std::int64_t, Expectation> expectations_of(const RunView& view) {
  const search::Problem problem = core::problem_of(view.study);
  std::map<std::int64_t, Expectation> out;
  std::optional<explain::Model> model;
  std::int64_t basis_of_fit = 0;
  for (const api::TrialPtr& trial : view.trials) {
    // Facts are numbered from 1: the basis is the number of facts known then.
    const auto known = static_cast<double>(trial->spec.search.basis);
    if (known >= kRefit * static_cast<double>(basis_of_fit) && known > 0) {
      auto fitted = explain::Model::fit(
          problem, core::history_before(view.study, view.trials, trial->spec.index),
          /*objective=*/0, kExpectationSamples);
      if (fitted.ok()) {
        model.emplace(*std::move(fitted));
        basis_of_fit = trial->spec.search.basis;
      }
    }
    if (!model) continue;
    const auto expected = expect(view.study.spec, *model, trial->spec.parameters);
    if (expected) out.emplace(trial->spec.index, *expected);
  }
  return out;
}

std::optional<double> recorded_cost(const api::Trial& trial) {
  std::optional<double> out;
  for (const api::Fact& fact : trial.status.facts) {
    if (fact.cost) out = fact.cost;
  }
  return out;
}

const char* cost_unit(const api::StudySpec& spec) {
  return spec.trial.gpu ? "GPU-seconds" : "worker-seconds";
}

std::string render_reason(const RunView& view, const api::Trial& trial, const Reason& reason) {
  return trial.metadata.name + "  " + format_parameters(trial.spec.parameters) + "\n\n" + "  " +
         chosen_text(view, trial, reason) + parent_text(view, trial) + "  " +
         expected_text(view, reason) + "  " + came_text(view, trial, reason) +
         (stopped_text(trial).empty() ? "" : "  " + stopped_text(trial));
}

Json reason_json(const RunView& view, const api::Trial& trial, const Reason& reason) {
  Json out = Json::object({{"trial", trial.metadata.name},
                           {"parameters", trial.spec.parameters},
                           {"sampler", reason.sampler},
                           {"basis", trial.spec.search.basis},
                           {"trialsBefore", reason.before.trials},
                           {"endedBefore", reason.before.ended},
                           {"bestBefore", reason.before.best},
                           {"phase", api::to_string(trial.status.phase)},
                           {"objective", objective_now(view.study.spec, trial)}});
  if (reason.explanation) {
    const search::Explanation& said = *reason.explanation;
    out.set("explanation", Json::object({{"words", said.words},
                                         {"mean", said.mean},
                                         {"deviation", said.deviation},
                                         {"acquisition", said.acquisition},
                                         {"cost", said.cost}}));
  }
  if (reason.expectation) {
    const Expectation& expected = *reason.expectation;
    out.set("expected", Json::object({{"mean", expected.mean},
                                      {"deviation", expected.deviation},
                                      {"beats", expected.beats},
                                      {"trials", static_cast<std::int64_t>(expected.trials)}}));
  }
  if (const auto& parent = trial.spec.parent) {
    out.set("parent", Json::object({{"trial", parent->trial}, {"step", parent->step}}));
    out.set("replaces", trial.spec.search.replaces);
  }
  if (core::is_replicate(trial)) out.set("repeats", trial.spec.search.replicates);
  if (const auto cost = recorded_cost(trial)) out.set("cost", *cost);
  if (reason.ranking) out.set("rank", reason.ranking->rank);
  if (trial.spec.stop) {
    out.set("stop", Json::object({{"reason", trial.spec.stop->reason},
                                  {"message", trial.spec.stop->message},
                                  {"basis", trial.spec.stop->basis}}));
  }
  return out;
}

}  // namespace fettle::cli
