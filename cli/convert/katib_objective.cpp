// An Experiment's objective and its numbers of trials.
#include <algorithm>

#include "api/fields/field.h"
#include "api/study/study.h"
#include "cli/convert/katib_parts.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kMostTrials = 1'000'000;  // of a Study's budget
constexpr std::int64_t kMostAtOnce = 1000;
constexpr std::int64_t kDefaultAtOnce = 3;  // Katib's

// Katib's strategy for the objective: min, max or latest. Left out, it is that of the direction.
std::string strategy_of(const Source& objective, const std::string& metric, bool minimizes,
                        KatibDraft& draft) {
  for (const Source& strategy : draft.reader.items(objective.member("metricStrategies"))) {
    if (draft.reader.text(strategy.member("name")) != metric) continue;
    return draft.reader.text(strategy.member("value")).value_or("");
  }
  return minimizes ? "min" : "max";
}

void convert_strategy(const Source& objective, const std::string& metric, bool minimizes, Json& out,
                      KatibDraft& draft) {
  const std::string strategy = strategy_of(objective, metric, minimizes, draft);
  if (strategy == "latest") return;
  if (strategy == (minimizes ? "min" : "max")) {
    out.set("take", "Best");
    return;
  }
  draft.reader.note(objective.member("metricStrategies"), "spec.objectives[0].take",
                    "the strategy " + api::clean_text(strategy, 40) +
                        " takes the worst value of a trial, which Fettle cannot; the last one "
                        "counts");
}

}  // namespace

void convert_objective(const Source& spec, KatibDraft& draft) {
  const Source objective = spec.member("objective");
  SourceReader& reader = draft.reader;
  if (!objective.present()) {
    return reader.fail(objective, "is missing; expected type and objectiveMetricName");
  }
  if (!reader.is_map(objective)) return;
  const Source name = objective.member("objectiveMetricName");
  const Source type = objective.member("type");
  const auto metric = reader.text(name);
  const auto direction = reader.text(type);
  if (!metric) reader.fail(name, "is missing; expected the name of the metric");
  if (direction != "minimize" && direction != "maximize") {
    reader.fail(type, "found " + api::describe(type.present() ? *type.value : Json()) +
                          ", expected minimize or maximize");
    return;
  }
  if (!metric) return;
  const bool minimizes = direction == "minimize";
  Json out = Json::object();
  out.set("metric", *metric);
  out.set("direction", minimizes ? "Minimize" : "Maximize");
  if (const auto goal = reader.number(objective.member("goal"))) out.set("goal", *goal);
  convert_strategy(objective, *metric, minimizes, out, draft);
  draft.spec.set("objectives", Json::Array{out});
  // Fettle keeps every metric that a trial reports.
  reader.lose_others(
      objective,
      {"type", "goal", "objectiveMetricName", "additionalMetricNames", "metricStrategies"},
      "spec.objectives[0]");
}

void convert_budget(const Source& spec, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  Json budget = Json::object();
  const Source most = spec.member("maxTrialCount");
  const auto trials = reader.whole(most, 1, kMostTrials);
  const auto at_once = reader.whole(spec.member("parallelTrialCount"), 1, kMostAtOnce);
  const auto failures = reader.whole(spec.member("maxFailedTrialCount"), 0, kMostTrials);
  const std::int64_t in_all = trials.value_or(api::Budget{}.trials);
  if (!most.present()) {
    reader.note(most, "spec.budget.trials",
                "the Experiment has no maxTrialCount, so Katib goes on until the goal; " +
                    std::to_string(in_all) + " trials are Fettle's default");
  }
  budget.set("trials", in_all);
  budget.set("parallelism", at_once.value_or(kDefaultAtOnce));
  // Katib ends an Experiment at this many failures, Fettle at one more than it tolerates.
  budget.set("failures", failures ? std::max<std::int64_t>(*failures - 1, 0) : in_all);
  draft.spec.set("budget", std::move(budget));
}

}  // namespace fettle::cli
