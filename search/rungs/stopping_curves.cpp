// The rules that judge by the trial's own learning curve: patience (no improvement for N reports),
// threshold (a value beyond hope), curve (forecast.h: too little chance to end among the best, even
// if the forecast is as wrong as the forecasts of other trials were).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "search/rungs/forecast.h"
#include "search/rungs/stopping.h"

namespace fettle::search {
namespace {

constexpr std::size_t kMostForecasts = 50;  // of other trials, for one judgement

std::string percent(double probability) {
  char buffer[32];
  const int size = std::snprintf(buffer, sizeof buffer, "%.3g %%", 100 * probability);
  return std::string(buffer, static_cast<std::size_t>(size));
}

// Losses of the others that came to their end, ascending.
std::vector<double> results_of_others(const JudgedRung& judged) {
  std::vector<double> out;
  for (std::size_t i = 0; i < judged.event; ++i) {
    const Event& event = judged.history.events[i];
    if (event.trial == judged.trial || event.fact.kind != api::FactKind::kResult) continue;
    const double loss = loss_of(event.fact, judged.sign);
    if (std::isfinite(loss)) out.push_back(loss);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Returns the distance between trials: the middle half of all values at rungs and of all results,
// or their whole range if that is 0.
double spread_of(const JudgedRung& judged) {
  std::vector<double> losses;
  for (std::size_t i = 0; i <= judged.event; ++i) {
    const double loss = loss_of(judged.history.events[i].fact, judged.sign);
    if (std::isfinite(loss)) losses.push_back(loss);
  }
  // Not empty: judge_curve() has seen a finite value of the judged trial.
  const double middle = quantile(losses, 0.75) - quantile(losses, 0.25);
  if (middle > 0 && std::isfinite(middle)) return middle;
  const double all = quantile(losses, 1) - quantile(losses, 0);
  return all > 0 && std::isfinite(all) ? all : 1;  // all are equal: any scale serves
}

// Returns the errors of forecasts made at this step for the newest trials that came to their end:
// how good an extrapolation from here has been in this Study.
std::vector<double> past_errors(const JudgedRung& judged, std::int64_t last_step, double spread) {
  std::map<std::int64_t, std::map<std::int64_t, double>> curves;  // by trial, by step
  std::vector<std::pair<std::int64_t, double>> ends;              // trial and loss, newest last
  for (std::size_t i = 0; i < judged.event; ++i) {
    const Event& event = judged.history.events[i];
    const double loss = loss_of(event.fact, judged.sign);
    if (event.trial == judged.trial || !std::isfinite(loss)) continue;
    if (event.fact.kind == api::FactKind::kResult) ends.emplace_back(event.trial, loss);
    const bool early = event.fact.step <= judged.step;
    if (event.fact.kind == api::FactKind::kRung && early) {
      curves[event.trial][event.fact.step] = loss;
    }
  }
  const std::size_t skipped = ends.size() - std::min(ends.size(), kMostForecasts);
  std::vector<double> out;
  for (std::size_t i = skipped; i < ends.size(); ++i) {
    std::vector<CurvePoint> curve;
    for (const auto& [step, loss] : curves[ends[i].first]) curve.push_back({step, loss});
    if (curve.empty()) continue;  // it had no finite value by this step
    out.push_back(ends[i].second - Forecast(curve, last_step, spread).mean());
  }
  return out;
}

// Returns the chance given by the forecast or, if it is larger, the chance when each past error is
// equally likely to occur again.
double careful_chance(const Forecast& forecast, double mark, const std::vector<double>& errors) {
  double sum = 0;
  // An end is the forecast plus an error, so the forecast itself has to beat mark - error.
  for (const double error : errors) sum += forecast.probability_below(mark - error);
  const double own = forecast.probability_below(mark);
  return errors.empty() ? own : std::max(own, sum / static_cast<double>(errors.size()));
}

}  // namespace

void judge_patience(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out) {
  const std::vector<CurvePoint> curve = curve_of(judged, judged.trial);
  double best = kWorstLoss;
  std::int64_t without = 0;  // reports since the best one
  for (const CurvePoint& point : curve) {
    without = point.loss < best ? 0 : without + 1;
    best = std::min(best, point.loss);
  }
  if (without >= rules.patience) out.verdict = Verdict::kStop;
  out.reason = opening(api::StoppingKind::kPatience, out, judged) + std::to_string(without) +
               " reports without an improvement on " + value_text(judged, best) + ", " +
               std::to_string(rules.patience) + " end a trial";
}

void judge_threshold(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out) {
  // In the user's sign. Without a threshold only a value that is not finite is worse.
  const double limit = rules.threshold.value_or(judged.sign * kWorstLoss);
  const bool worse = judged.loss > judged.sign * limit || judged.loss == kWorstLoss;
  if (worse) out.verdict = Verdict::kStop;
  out.reason = opening(api::StoppingKind::kThreshold, out, judged) +
               value_text(judged, judged.loss) + " is " + (worse ? "" : "not ") + "worse than " +
               Json(limit).dump();
}

void judge_curve(const JudgedRung& judged, const api::EarlyStopping& rules, std::int64_t last_step,
                 Judgement& out) {
  const std::string at = opening(api::StoppingKind::kCurve, out, judged);
  const std::vector<double> results = results_of_others(judged);
  const auto needed = static_cast<std::size_t>(std::max(rules.min_trials, rules.top));
  if (results.size() < needed) {
    out.reason = at + "only " + std::to_string(results.size()) + " of " + std::to_string(needed) +
                 " other trials have come to their end";
    return;
  }
  std::vector<CurvePoint> curve = curve_of(judged, judged.trial);
  std::erase_if(curve, [](const CurvePoint& point) { return !std::isfinite(point.loss); });
  if (curve.empty()) {
    out.verdict = Verdict::kStop;
    out.reason = at + "its objective never had a finite value";
    return;
  }
  // Results ascend, and `needed` ensures that there are `top` of them. This is the one to beat.
  const double mark = results[static_cast<std::size_t>(rules.top - 1)];
  const double spread = spread_of(judged);
  const Forecast forecast(curve, last_step, spread);
  const double chance = careful_chance(forecast, mark, past_errors(judged, last_step, spread));
  if (chance < rules.probability) out.verdict = Verdict::kStop;
  out.reason = at + "expected to end at " + value_text(judged, forecast.mean()) +
               ", better than the best " + (rules.top == 1 ? "" : std::to_string(rules.top) + " ") +
               "(" + value_text(judged, mark) + ") with a probability of " + percent(chance);
}

}  // namespace fettle::search
