// Who goes on. asha: the stopping variant of Li et al. 2020, "A system for massively parallel
// hyperparameter tuning": at each rung the best 1/eta of all values recorded there so far go on,
// and at least the best one. median: Golovin et al. 2017, "Google Vizier": a trial stops whose best
// value so far is worse than the median of the running averages of the others at that step.
//
// The first objective decides. Values are turned so that less is better; what is infeasible or not
// finite is worse than everything, and under asha a trial with such a value at a rung stops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "api/names.h"
#include "base/check.h"
#include "search/search.h"

namespace fettle::search {
namespace {

// Steps that a rule may look at: more of them would be noise, and facts that nobody needs.
constexpr std::int64_t kMaxRungs = 1000;
constexpr double kWorst = std::numeric_limits<double>::infinity();

std::string text(double number) {
  return std::isfinite(number) ? Json(number).dump() : "no finite value";
}

double loss_of(const api::Fact& fact, double sign) {
  const bool usable =
      !fact.infeasible && !fact.values.empty() && fact.values[0] && std::isfinite(*fact.values[0]);
  return usable ? sign * *fact.values[0] : kWorst;
}

// The newest Rung event of `trial`, as a position in the history; the size of the history if none.
std::size_t newest_rung(const History& history, std::int64_t trial) {
  for (std::size_t i = history.events.size(); i-- > 0;) {
    const Event& event = history.events[i];
    if (event.trial == trial && event.fact.kind == api::FactKind::kRung) return i;
  }
  return history.events.size();
}

struct Question {
  const History& history;
  std::size_t event;  // position of the Rung fact that is judged
  std::int64_t trial;
  std::int64_t step;
  double loss;
  double sign;  // -1 where the objective is maximised
};

std::string where(const std::string& rule, const Judgement& judgement, const Question& question) {
  return rule + ": rung " + std::to_string(judgement.rung) + " (step " +
         std::to_string(question.step) + "): ";
}

// Of each trial the newest value at exactly this step, up to the event that is judged.
std::vector<double> losses_at_step(const Question& question) {
  std::map<std::int64_t, double> by_trial;
  for (std::size_t i = 0; i <= question.event; ++i) {
    const Event& event = question.history.events[i];
    if (event.fact.kind != api::FactKind::kRung || event.fact.step != question.step) continue;
    by_trial[event.trial] = loss_of(event.fact, question.sign);
  }
  std::vector<double> out;
  for (const auto& [trial, loss] : by_trial) out.push_back(loss);
  return out;
}

void judge_asha(const Question& question, double reduction_factor, Judgement& out) {
  std::vector<double> losses = losses_at_step(question);
  const auto recorded = static_cast<double>(losses.size());
  const auto go_on =
      static_cast<std::size_t>(std::max(1.0, std::floor(recorded / reduction_factor)));
  std::sort(losses.begin(), losses.end());
  const bool among_best = question.loss <= losses[go_on - 1];
  if (!among_best) out.verdict = Verdict::kStop;
  out.reason = where("asha", out, question) + text(question.sign * question.loss) +
               (among_best ? " is" : " is not") + " among the best " + std::to_string(go_on) +
               " of " + std::to_string(losses.size());
}

// Mean of each other trial's values up to the step, where it has one at that step.
std::vector<double> running_averages(const Question& question) {
  struct Sum {
    double mean = 0;
    double count = 0;
    bool arrived = false;
  };
  std::map<std::int64_t, Sum> by_trial;
  for (std::size_t i = 0; i < question.event; ++i) {
    const Event& event = question.history.events[i];
    if (event.fact.kind != api::FactKind::kRung || event.trial == question.trial) continue;
    if (event.fact.step > question.step) continue;
    Sum& sum = by_trial[event.trial];
    const double loss = loss_of(event.fact, question.sign);
    sum.count += 1;
    // Term by term, so that the sum of large values is not more than a double holds.
    sum.mean = sum.mean * ((sum.count - 1) / sum.count) + loss / sum.count;
    sum.arrived |= event.fact.step == question.step;
  }
  std::vector<double> out;
  for (const auto& [trial, sum] : by_trial) {
    if (sum.arrived) out.push_back(sum.mean);
  }
  return out;
}

double best_so_far(const Question& question) {
  double best = kWorst;
  for (std::size_t i = 0; i <= question.event; ++i) {
    const Event& event = question.history.events[i];
    if (event.trial != question.trial || event.fact.kind != api::FactKind::kRung) continue;
    best = std::min(best, loss_of(event.fact, question.sign));
  }
  return best;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] == values[middle] ? values[middle]
                                              : 0.5 * values[middle - 1] + 0.5 * values[middle];
}

void judge_median(const Question& question, const api::EarlyStopping& rules, Judgement& out) {
  const std::vector<double> averages = running_averages(question);
  const std::string at = where("median", out, question);
  if (question.step < rules.start_step) {
    out.reason = at + "before start step " + std::to_string(rules.start_step);
    return;
  }
  if (averages.empty() || static_cast<std::int64_t>(averages.size()) < rules.min_trials) {
    out.reason = at + "only " + std::to_string(averages.size()) + " of " +
                 std::to_string(rules.min_trials) + " other trials have come here";
    return;
  }
  const double best = best_so_far(question);
  const double middle = median(averages);
  const bool worse = best > middle;
  if (worse) out.verdict = Verdict::kStop;
  out.reason = at + "the best value so far, " + text(question.sign * best) + ", is " +
               (worse ? "" : "not ") + "worse than the median " + text(question.sign * middle) +
               " of " + std::to_string(averages.size()) + " others";
}

std::vector<std::int64_t> asha_rungs(const api::EarlyStopping& rules,
                                     const api::Resource& resource) {
  std::vector<std::int64_t> out;
  double exact = static_cast<double>(std::max<std::int64_t>(resource.min, 1));
  while (exact < static_cast<double>(resource.max) &&
         static_cast<std::int64_t>(out.size()) < kMaxRungs) {
    const auto step = static_cast<std::int64_t>(exact);
    if (out.empty() || step > out.back()) out.push_back(step);
    exact = std::max(exact * rules.reduction_factor, std::floor(exact) + 1);
  }
  return out;
}

std::vector<std::int64_t> median_rungs(const api::EarlyStopping& rules,
                                       const api::Resource& resource) {
  std::vector<std::int64_t> out;
  const std::int64_t first = std::max({rules.start_step, resource.min, std::int64_t{1}});
  if (first >= resource.max) return out;
  const std::int64_t stride = (resource.max - first - 1) / kMaxRungs + 1;
  for (std::int64_t step = first; step < resource.max; step += stride) out.push_back(step);
  return out;
}

}  // namespace

std::vector<std::string> early_stopping_names() {
  const auto names = api::early_stopping_names();
  return {names.begin(), names.end()};
}

std::vector<std::int64_t> rung_steps(const std::optional<api::EarlyStopping>& rules,
                                     const api::Resource& resource) {
  if (!rules) return {};
  return rules->name == "median" ? median_rungs(*rules, resource) : asha_rungs(*rules, resource);
}

Judgement judge(const Problem& problem, const api::EarlyStopping& rules, const History& history,
                std::int64_t trial) {
  Judgement out;
  const std::size_t event = newest_rung(history, trial);
  if (event == history.events.size()) {
    out.reason = rules.name + ": no rung reached yet";
    return out;
  }
  CHECK(!problem.objectives.empty(), "a Study has an objective");
  const bool maximize = problem.objectives[0].direction == api::Direction::kMaximize;
  const api::Fact& fact = history.events[event].fact;
  const double sign = maximize ? -1.0 : 1.0;
  const Question question{history, event, trial, fact.step, loss_of(fact, sign), sign};
  const std::vector<std::int64_t> rungs = rung_steps(rules, problem.resource);
  out.rung = std::lower_bound(rungs.begin(), rungs.end(), fact.step) - rungs.begin();
  if (question.loss == kWorst && rules.name == "asha") {
    out.verdict = Verdict::kStop;
    out.reason = where("asha", out, question) + "its objective has no finite value";
  } else if (rules.name == "median") {
    judge_median(question, rules, out);
  } else {
    judge_asha(question, rules.reduction_factor, out);
  }
  return out;
}

}  // namespace fettle::search
