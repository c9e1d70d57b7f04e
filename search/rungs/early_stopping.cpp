// Early stopping: selects the rule that judges at each step, and the history that it needs. The
// rules are in stopping_ranks.cpp (by comparison with others at the same step) and
// stopping_curves.cpp (by the trial's own curve).
//
// The first objective decides. A trial without a finite value at a rung stops under asha,
// percentile and threshold. No trial stops for a constraint: asha ranks trials that are outside one
// so far behind the others, and the other rules ignore constraints.
#include <algorithm>
#include <cmath>
#include <map>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/trial/trial.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/rungs/stopping.h"

namespace fettle::search {
namespace {

using api::StoppingKind;

// Limit of the steps at which a rule judges: more would be noise, and facts without a use.
constexpr std::int64_t kMaxRungs = 1000;

// The newest Rung event of `trial` up to seq `basis`, as a position in the history; the size of the
// history if none.
std::size_t newest_rung(const History& history, std::int64_t trial, std::int64_t basis) {
  for (std::size_t i = history.events.size(); i-- > 0;) {
    const Event& event = history.events[i];
    if (event.fact.seq > basis) continue;
    if (event.trial == trial && event.fact.kind == api::FactKind::kRung) return i;
  }
  return history.events.size();
}

std::vector<std::int64_t> asha_rungs(const api::EarlyStopping& rules,
                                     const api::Resource& resource) {
  std::vector<std::int64_t> out;
  double exact = static_cast<double>(std::max<std::int64_t>(resource.min, 1));
  while (exact < static_cast<double>(resource.max) &&
         static_cast<std::int64_t>(out.size()) < kMaxRungs) {
    const auto step = static_cast<std::int64_t>(exact);
    if (out.empty() || step > out.back()) out.push_back(step);
    // A factor close to 1 still advances by a step.
    exact = std::max(exact * rules.reduction_factor, std::floor(exact) + 1);
  }
  return out;
}

std::vector<std::int64_t> every_rung(const api::EarlyStopping& rules,
                                     const api::Resource& resource) {
  std::vector<std::int64_t> out;
  // Two rules need the whole curve, although they stop nothing before start_step.
  const bool whole = api::traits(rules.name).wants_curve;
  const std::int64_t from = whole ? resource.min : std::max(rules.start_step, resource.min);
  const std::int64_t first = std::max<std::int64_t>(from, 1);
  if (first >= resource.max) return out;
  // The smallest stride with at most kMaxRungs steps below resource.max.
  const std::int64_t stride = (resource.max - first - 1) / kMaxRungs + 1;
  for (std::int64_t step = first; step < resource.max; step += stride) out.push_back(step);
  return out;
}

// Calls the rule. A value without a case does not compile.
void apply_rule(const api::EarlyStopping& rules, const JudgedRung& judged, std::int64_t last_step,
                Judgement& out) {
  switch (rules.name) {
    case StoppingKind::kAsha:
      return judge_asha(judged, rules.reduction_factor, out);
    case StoppingKind::kMedian:
      return judge_median(judged, rules, out);
    case StoppingKind::kPercentile:
      return judge_percentile(judged, rules, out);
    case StoppingKind::kPatience:
      return judge_patience(judged, rules, out);
    case StoppingKind::kThreshold:
      return judge_threshold(judged, rules, out);
    case StoppingKind::kCurve:
      return judge_curve(judged, rules, last_step, out);
    case StoppingKind::kNone:
      return;
  }
}

}  // namespace

std::string opening(api::StoppingKind rule, const Judgement& judgement, const JudgedRung& judged) {
  return name_of(rule) + ": rung " + std::to_string(judgement.rung) + " (step " +
         std::to_string(judged.step) + "): ";
}

std::string value_text(const JudgedRung& judged, double loss) {
  return std::isfinite(loss) ? Json(judged.sign * loss).dump() : "no finite value";
}

std::vector<CurvePoint> curve_of(const JudgedRung& judged, std::int64_t trial) {
  std::map<std::int64_t, double> by_step;
  for_each_rung(judged, [&](const Event& event, double loss) {
    if (event.trial == trial) by_step[event.fact.step] = loss;
  });
  std::vector<CurvePoint> out;
  for (const auto& [step, loss] : by_step) out.push_back({step, loss});
  return out;
}

std::vector<std::int64_t> rung_steps(const api::Algorithm& algorithm,
                                     const std::optional<api::EarlyStopping>& rules,
                                     const api::Resource& resource) {
  Problem problem;
  problem.algorithm = algorithm;
  problem.resource = resource;
  problem.early_stopping = rules;
  // Neither promotes() nor ladder_of() reads any other field.
  if (promotes(problem)) {
    std::vector<std::int64_t> out = ladder_of(problem);
    out.pop_back();  // resource.max, where trials end
    return out;
  }
  if (!rules || rules->name == StoppingKind::kNone) return {};
  return api::traits(rules->name).has_rungs ? asha_rungs(*rules, resource)
                                            : every_rung(*rules, resource);
}

Judgement judge(const Problem& problem, const api::EarlyStopping& rules, const History& history,
                std::int64_t trial, std::int64_t basis) {
  Judgement out;
  if (rules.name == StoppingKind::kNone) {
    out.reason = "every trial runs to its end";
    return out;
  }
  // Events after seq `basis` were not known at the time of the decision.
  const std::size_t event = newest_rung(history, trial, basis);
  if (event == history.events.size()) {
    out.reason = name_of(rules.name) + ": no rung reached yet";
    return out;
  }
  const api::Fact& fact = history.events[event].fact;
  const double sign = loss_sign(problem.objectives);
  const JudgedRung judged{history, event,           trial, fact.step, loss_of(fact, sign),
                          sign,    is_outside(fact)};
  const auto rungs = rung_steps(problem.algorithm, rules, problem.resource);
  out.rung = std::lower_bound(rungs.begin(), rungs.end(), fact.step) - rungs.begin();
  if (api::traits(rules.name).has_start && judged.step < rules.start_step) {
    out.reason =
        opening(rules.name, out, judged) + "before start step " + std::to_string(rules.start_step);
    return out;
  }
  apply_rule(rules, judged, problem.resource.max, out);
  return out;
}

}  // namespace fettle::search
