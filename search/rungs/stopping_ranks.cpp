// The rules that compare a trial with others at the same step.
//
// asha: the stopping variant of Li et al. 2020, "A system for massively parallel hyperparameter
// tuning": at each rung the best 1/eta of all values recorded there so far continue, and at least
// the best one. median: Golovin et al. 2017, "Google Vizier": a trial stops if its best value so
// far is worse than the median of the running averages of the others at that step. percentile: a
// trial stops if its best value so far is worse than N percent of the others' best values up to
// that step.
#include <algorithm>
#include <cmath>
#include <compare>
#include <map>

#include "search/rungs/stopping.h"

namespace fettle::search {
namespace {

// A value in the order of places: values outside a constraint, as of then, come after all others.
struct Placed {
  bool outside = false;
  double loss = 0;
  auto operator<=>(const Placed&) const = default;
};

// Returns the newest value of each trial at exactly this step, up to the judged event; best first.
std::vector<Placed> values_at_step(const JudgedRung& judged) {
  std::map<std::int64_t, Placed> by_trial;
  for_each_rung(judged, [&](const Event& event, double loss) {
    if (event.fact.step != judged.step) return;
    by_trial[event.trial] = {is_outside(event.fact) || loss == kWorstLoss, loss};
  });
  std::vector<Placed> out;
  for (const auto& [trial, placed] : by_trial) out.push_back(placed);
  std::sort(out.begin(), out.end());
  return out;
}

// The values of another trial up to the step.
struct Progress {
  double mean = 0;
  double best = kWorstLoss;
  double count = 0;
  bool arrived = false;  // has a value at that step
};

// Returns the mean, or the best, of each other trial that has come to the step.
std::vector<double> of_others(const JudgedRung& judged, double Progress::*what) {
  std::map<std::int64_t, Progress> by_trial;
  for_each_rung(judged, [&](const Event& event, double loss) {
    if (event.trial == judged.trial || event.fact.step > judged.step) return;
    Progress& its = by_trial[event.trial];
    its.count += 1;
    // Updates the mean term by term, so that a sum of large values does not overflow.
    its.mean = its.mean * ((its.count - 1) / its.count) + loss / its.count;
    its.best = std::min(its.best, loss);
    its.arrived |= event.fact.step == judged.step;
  });
  std::vector<double> out;
  for (const auto& [trial, its] : by_trial) {
    if (its.arrived) out.push_back(its.*what);
  }
  return out;
}

double best_so_far(const JudgedRung& judged) {
  double best = kWorstLoss;
  for_each_rung(judged, [&](const Event& event, double loss) {
    if (event.trial == judged.trial) best = std::min(best, loss);
  });
  return best;
}

// Whether fewer others than the rule needs have a value here; if so, sets the reason.
bool too_few(std::size_t others, const api::EarlyStopping& rules, const std::string& at,
             Judgement& out) {
  if (others > 0 && static_cast<std::int64_t>(others) >= rules.min_trials) return false;
  out.reason = at + "only " + std::to_string(others) + " of " + std::to_string(rules.min_trials) +
               " other trials have come here";
  return true;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  if (values[below] == values[above]) return values[below];  // also if both are infinite
  const double part = place - static_cast<double>(below);
  // values[above] may be infinite, and 0 * infinity is NaN.
  return part == 0 ? values[below] : (1 - part) * values[below] + part * values[above];
}

void judge_asha(const JudgedRung& judged, double reduction_factor, Judgement& out) {
  if (judged.loss == kWorstLoss) {
    out.verdict = Verdict::kStop;
    out.reason =
        opening(api::StoppingKind::kAsha, out, judged) + "its objective has no finite value";
    return;
  }
  const std::vector<Placed> values = values_at_step(judged);
  const auto recorded = static_cast<double>(values.size());
  const auto continuing =
      static_cast<std::size_t>(std::max(1.0, std::floor(recorded / reduction_factor)));
  // At least `continuing` values exist: the judged one is among them.
  const bool among_best = Placed{judged.outside, judged.loss} <= values[continuing - 1];
  if (!among_best) out.verdict = Verdict::kStop;
  out.reason = opening(api::StoppingKind::kAsha, out, judged) + value_text(judged, judged.loss) +
               (judged.outside ? ", outside a constraint so far," : "") +
               (among_best ? " is" : " is not") + " among the best " + std::to_string(continuing) +
               " of " + std::to_string(values.size());
}

void judge_median(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out) {
  const std::vector<double> averages = of_others(judged, &Progress::mean);
  const std::string at = opening(api::StoppingKind::kMedian, out, judged);
  if (too_few(averages.size(), rules, at, out)) return;
  const double best = best_so_far(judged);
  const double middle = quantile(averages, 0.5);
  const bool worse = best > middle;
  if (worse) out.verdict = Verdict::kStop;
  out.reason = at + "the best value so far, " + value_text(judged, best) + ", is " +
               (worse ? "" : "not ") + "worse than the median " + value_text(judged, middle) +
               " of " + std::to_string(averages.size()) + " others";
}

void judge_percentile(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out) {
  const std::vector<double> others = of_others(judged, &Progress::best);
  const std::string at = opening(api::StoppingKind::kPercentile, out, judged);
  if (too_few(others.size(), rules, at, out)) return;
  const double best = best_so_far(judged);
  const double limit = quantile(others, rules.percentile / 100);
  // A trial without a finite value stops even if `limit` is infinite as well.
  const bool worse = best > limit || best == kWorstLoss;
  if (worse) out.verdict = Verdict::kStop;
  out.reason = at + "the best value so far, " + value_text(judged, best) + ", is " +
               (worse ? "" : "not ") + "worse than " + value_text(judged, limit) +
               ", which the best " + Json(rules.percentile).dump() + " % of " +
               std::to_string(others.size()) + " others reached";
}

}  // namespace fettle::search
