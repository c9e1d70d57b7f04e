#include "search/rungs/rung_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/check.h"
#include "search/maths/loss.h"
#include "search/maths/normal.h"

namespace fettle::search {
namespace {

// The prior agreement of neighbouring rungs, and the number of pairs that a prior is worth: few,
// since a wrong prior wastes all work until it is given up.
constexpr double kPriorTrust = 0.9;
constexpr double kPriorPairs = 2;

// A loss that is not finite comes last, outside a constraint or not.
bool is_before(const RungTable::Entry& a, const RungTable::Entry& b) {
  const auto place = [](const RungTable::Entry& entry) {
    return std::tuple(std::isinf(entry.loss), entry.outside, entry.loss, entry.trial);
  };
  return place(a) < place(b);
}

// Sums over pairs of scores.
struct Moments {
  double n = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  void add(double a, double b) {
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  double variance_x() const { return xx / n - (x / n) * (x / n); }
  double variance_y() const { return yy / n - (y / n) * (y / n); }
  double covariance() const { return xy / n - (x / n) * (y / n); }
};

}  // namespace

RungTable::RungTable(const Problem& problem, const History& history,
                     std::vector<std::int64_t> steps)
    : RungTable(problem, history, std::move(steps), history.events.size()) {}

RungTable::RungTable(const Problem& problem, const History& history,
                     std::vector<std::int64_t> steps, std::size_t events)
    : steps_(std::move(steps)),
      rows_(history.trials.size()),
      by_rung_(steps_.size()),
      lowest_reported_(rungs()) {
  CHECK(!steps_.empty(), "there is a rung");
  const double sign = loss_sign(problem.objectives);
  // By rung: no loss until an event brings one, and not outside a constraint.
  for (Row& row : rows_) {
    row.losses.resize(steps_.size());
    row.outside.resize(steps_.size());
  }
  for (std::size_t i = 0; i < history.stages.size(); ++i)
    rows_[i].bracket = history.stages[i].bracket;
  for (std::size_t i = 0; i < events; ++i) add(history.events[i], sign);
  for (const Row& row : rows_) {
    // Only a first value after silent legs shows at which rung programs begin to report.
    if (row.silent_legs == 0 || !has_value(row)) continue;
    first_rung_ = std::max(first_rung_, std::min(row.bracket + row.silent_legs, rungs() - 1));
  }
  for (std::size_t rung = 0; rung < steps_.size(); ++rung) {
    for (std::size_t trial = 0; trial < rows_.size(); ++trial) {
      const std::optional<double>& loss = rows_[trial].losses[rung];
      if (!loss) continue;
      by_rung_[rung].push_back(
          {static_cast<std::int64_t>(trial), *loss, rows_[trial].outside[rung]});
    }
    std::sort(by_rung_[rung].begin(), by_rung_[rung].end(), is_before);
  }
}

void RungTable::add(const Event& event, double sign) {
  Row& row = rows_[static_cast<std::size_t>(event.trial)];
  const api::Fact& fact = event.fact;
  switch (fact.kind) {
    case api::FactKind::kFailed:
      row.over = true;
      return;
    case api::FactKind::kStopped:
      end_leg(row);  // the facts of the leg's rungs precede its end
      return;
    case api::FactKind::kResult:
      row.over = true;
      row.losses.back() = loss_of(fact, sign);
      row.outside.back() = false;  // an infeasible result has an infinite loss already
      return;
    case api::FactKind::kRung:
      break;
  }
  // Facts at other steps come from early-stopping rules that were in force before.
  const auto at = std::lower_bound(steps_.begin(), steps_.end(), fact.step);
  if (at == steps_.end() || *at != fact.step) return;
  const auto rung = static_cast<std::size_t>(at - steps_.begin());
  row.losses[rung] = loss_of(fact, sign);
  row.outside[rung] = is_outside(fact);
}

void RungTable::end_leg(Row& row) {
  if (has_value(row)) {
    // The rung of this leg: the first leg ends at `bracket`, each further one a rung higher.
    lowest_reported_ = std::min(lowest_reported_, row.bracket + row.legs_ended);
  } else {
    ++row.silent_legs;
  }
  ++row.legs_ended;
}

std::optional<double> RungTable::loss(std::int64_t trial, std::int64_t rung) const {
  return of(trial).losses[static_cast<std::size_t>(rung)];
}

// A leg for each rung from `bracket` to `rung` has begun; it rests when all of them have ended.
bool RungTable::rests(std::int64_t trial, const Stage& stage) const {
  return of(trial).legs_ended > stage.rung - stage.bracket;
}

bool RungTable::waits(std::int64_t trial, const Stage& stage) const {
  const Row& row = of(trial);
  return !row.over && !stage.ended && rests(trial, stage) && stage.rung < rungs() &&
         row.losses[static_cast<std::size_t>(stage.rung)].has_value();
}

bool RungTable::runs(std::int64_t trial, const Stage& stage) const {
  return !of(trial).over && !stage.ended && !rests(trial, stage);
}

bool RungTable::any_runs(const std::vector<Stage>& stages) const {
  for (std::size_t trial = 0; trial < stages.size(); ++trial) {
    if (runs(static_cast<std::int64_t>(trial), stages[trial])) return true;
  }
  return false;
}

bool RungTable::is_silent(std::int64_t trial, const Stage& stage) const {
  return !of(trial).over && !stage.ended && rests(trial, stage) && !waits(trial, stage);
}

bool RungTable::has_value(const Row& row) {
  return std::ranges::any_of(row.losses, [](const auto& loss) { return loss.has_value(); });
}

bool RungTable::is_early(std::int64_t trial, const Stage& stage) const {
  return !has_value(of(trial)) && is_silent(trial, stage) && stage.rung < lowest_reported_ &&
         stage.rung + 1 < rungs();
}

bool RungTable::is_probe(std::int64_t trial, const Stage& stage) const {
  const Row& row = of(trial);
  return row.silent_legs > 0 && !has_value(row) && stage.rung > first_rung_ &&
         (row.over || runs(trial, stage));
}

bool are_tied(const RungTable::Entry& a, const RungTable::Entry& b) {
  return a.loss == b.loss && a.outside == b.outside;
}

std::vector<double> normal_scores(const std::vector<RungTable::Entry>& entries) {
  std::vector<double> out(entries.size());
  const auto count = static_cast<double>(entries.size());
  for (std::size_t from = 0; from < entries.size();) {
    std::size_t to = from;
    while (to < entries.size() && are_tied(entries[to], entries[from])) ++to;
    const double place = 0.5 * static_cast<double>(from + to);  // the mean of from + 1/2 ...
    for (std::size_t i = from; i < to; ++i) out[i] = normal_quantile(place / count);
    from = to;
  }
  return out;
}

std::string list_steps(const std::vector<std::int64_t>& steps) {
  std::string out;
  for (const std::int64_t step : steps) out += (out.empty() ? "" : ", ") + std::to_string(step);
  return out;
}

double RungTable::trust(std::int64_t rung) const {
  const std::int64_t last = rungs() - 1;
  if (rung == last) return 1;
  if (rung + 1 == last) return agreement(rung, last, kPriorTrust);
  const double step_by_step = agreement(rung, rung + 1, kPriorTrust) * trust(rung + 1);
  return agreement(rung, last, step_by_step);
}

double RungTable::agreement(std::int64_t rung, std::int64_t higher, double prior) const {
  const std::vector<Entry>& low = at(rung);
  const std::vector<Entry>& high = at(higher);
  const std::vector<double> low_scores = normal_scores(low);
  const std::vector<double> high_scores = normal_scores(high);
  std::map<std::int64_t, double> score_above;
  for (std::size_t i = 0; i < high.size(); ++i) score_above[high[i].trial] = high_scores[i];
  // `all`: every score at the low rung; `pairs`: the scores of trials with a value at both rungs.
  Moments all;
  Moments pairs;
  for (std::size_t i = 0; i < low.size(); ++i) {
    all.add(low_scores[i], 0);
    const auto above = score_above.find(low[i].trial);
    if (above != score_above.end()) pairs.add(low_scores[i], above->second);
  }
  if (pairs.n < 3) return prior;  // two points always lie on a line
  const double spread = pairs.variance_x() * pairs.variance_y();
  if (!(spread > 0)) return prior;
  // A negative correlation counts as none: the lower rung does not predict the higher one.
  const double r = std::clamp(pairs.covariance() / std::sqrt(spread), 0.0, 1.0);
  // Only the best were promoted, so the pairs span a narrower range of low scores than all trials
  // do, which makes their correlation too small. Thorndike's case 2 undoes that.
  const double narrowed = std::min(1.0, pairs.variance_x() / all.variance_x());
  const double corrected = r == 0 ? 0 : r / std::sqrt(r * r + narrowed * (1 - r * r));
  // As if kPriorPairs further pairs had agreed as much as `prior` says.
  return (pairs.n * corrected + kPriorPairs * prior) / (pairs.n + kPriorPairs);
}

}  // namespace fettle::search
