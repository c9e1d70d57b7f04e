#include "search/samplers/density_ratio.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace fettle::search {
namespace {

constexpr std::int64_t kMaxGood = 25;
constexpr std::size_t kMostBad = 2000;
// No share of the gap: all kernels of pending trials have the least width.
constexpr KernelWidths kPendingWidths = {0, Columns::kNarrowest, false};

}  // namespace

DensityRatio::DensityRatio(const Space& space, std::vector<api::Objective> objectives)
    : space_(space), objectives_(std::move(objectives)), ranking_(objectives_), columns_(space) {}

void DensityRatio::add_trial(const Point* point) {
  pending_.push_back(columns_.size());
  columns_.push(point);
  running_.clear();
}

void DensityRatio::remove_trial() {
  pending_.pop_back();
  columns_.pop();
  running_.clear();
}

void DensityRatio::add_event(const Event& event) {
  const std::size_t before = ranking_.size();
  ranking_.add(event.trial, event.fact);
  if (event.fact.kind == api::FactKind::kRung) return;
  ++version_;
  models_.clear();
  running_.clear();
  // A trial that paused and resumed ends again: it has left pending_ already.
  if (ranking_.size() == before) return;
  pending_.erase(std::lower_bound(pending_.begin(), pending_.end(), event.trial));
  ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), event.trial), event.trial);
}

void DensityRatio::reset() {
  columns_.clear();
  ranking_ = Ranking(objectives_);
  pending_.clear();
  ended_.clear();
  ++version_;
  models_.clear();
  running_.clear();
}

void DensityRatio::fit() {
  const std::size_t groups = space_.groups().size();
  // Each cache is complete, and its loop does nothing, or was cleared.
  for (std::size_t g = models_.size(); g < groups; ++g) {
    const std::vector<std::size_t>& group = space_.groups()[g];
    const Good good = good_trials(g);
    models_.push_back({Parzen(space_, group, columns_, good.trials, good.weights),
                       Parzen(space_, group, columns_, bad_trials(g, good.trials))});
  }
  for (std::size_t g = running_.size(); g < groups; ++g) running_.push_back(running_trials(g));
}

// Returns the best tenth of the ended trials, by age. Weights grow with the rank as in the
// recombination of an evolution strategy: rank r of n has a weight proportional to ln(n + 1) - ln
// r.
DensityRatio::Good DensityRatio::good_trials(std::size_t group) {
  const std::int64_t ended = std::count_if(
      ended_.begin(), ended_.end(), [&](std::int64_t trial) { return in_group(trial, group); });
  const auto count = static_cast<std::size_t>(std::min((ended + 9) / 10, kMaxGood));  // rounded up
  std::vector<std::pair<std::int64_t, double>> best;
  double sum = 0;
  for (const std::int64_t trial : ranking_.order()) {
    if (best.size() == count) break;
    if (!in_group(trial, group)) continue;
    const auto rank = static_cast<double>(best.size() + 1);
    best.emplace_back(trial, std::log(static_cast<double>(count + 1)) - std::log(rank));
    sum += best.back().second;
  }
  std::sort(best.begin(), best.end());
  Good out;
  for (const auto& [trial, weight] : best) {
    out.trials.push_back(trial);
    out.weights.push_back(weight * static_cast<double>(best.size()) / sum);
  }
  return out;
}

// Returns the other trials among the newest ended trials, by age.
std::vector<std::int64_t> DensityRatio::bad_trials(std::size_t group,
                                                   const std::vector<std::int64_t>& good) const {
  std::vector<std::int64_t> out;
  const std::size_t older = ended_.size() > kMostBad ? ended_.size() - kMostBad : 0;
  for (std::size_t i = older; i < ended_.size(); ++i) {
    if (!in_group(ended_[i], group)) continue;
    if (!std::binary_search(good.begin(), good.end(), ended_[i])) out.push_back(ended_[i]);
  }
  return out;
}

std::optional<Parzen> DensityRatio::running_trials(std::size_t group) const {
  std::vector<std::int64_t> trials;
  std::copy_if(pending_.begin(), pending_.end(), std::back_inserter(trials),
               [&](std::int64_t trial) { return in_group(trial, group); });
  if (trials.empty()) return std::nullopt;
  std::vector<double> weights(trials.size(), 1.0);
  return Parzen(space_, space_.groups()[group], columns_, trials, std::move(weights),
                kPendingWidths);
}

bool DensityRatio::in_group(std::int64_t trial, std::size_t group) const {
  return is_active(columns_.at(space_.groups()[group].front(), trial));
}

DensityRatio::Candidates DensityRatio::with_densities(std::size_t group,
                                                      std::vector<Point> points) const {
  Candidates out{std::move(points), {}, {}};
  out.good = models_[group].good.log_densities(out.points);
  out.bad = models_[group].bad.log_densities(out.points);
  return out;
}

std::vector<double> DensityRatio::log_ratios(std::size_t group,
                                             const Candidates& candidates) const {
  std::vector<double> out = candidates.good;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= candidates.bad[i];
  const std::optional<Parzen>& running = running_[group];
  if (!running) return out;
  // good / (bad + share * running): densities are averages over kernels, so `running` is scaled by
  // its weight relative to the bad.
  const double share = running->weight() / models_[group].bad.weight();
  const std::vector<double> logs = running->log_densities(candidates.points);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] -= std::log1p(share * std::exp(logs[i] - candidates.bad[i]));
  }
  return out;
}

std::vector<double> DensityRatio::log_ratios(const std::vector<Point>& points) const {
  std::vector<double> out(points.size(), 0.0);
  for (std::size_t g = 0; g < space_.groups().size(); ++g) {
    const std::size_t first = space_.groups()[g].front();  // active if the whole group is
    std::vector<Point> active;
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!is_active(points[i][first])) continue;
      active.push_back(points[i]);
      rows.push_back(i);
    }
    if (rows.empty()) continue;
    const std::vector<double> ratios = log_ratios(g, with_densities(g, std::move(active)));
    for (std::size_t k = 0; k < rows.size(); ++k) out[rows[k]] += ratios[k];
  }
  return out;
}

Point DensityRatio::draw(std::size_t group, Random& random) const {
  Point out(space_.dimensions(), kInactive);
  models_[group].good.draw(random, out);
  return out;
}

bool DensityRatio::is_pending(std::size_t group, const Point& point) const {
  const std::vector<std::size_t>& parameters = space_.groups()[group];
  return std::any_of(pending_.begin(), pending_.end(), [&](std::int64_t trial) {
    return std::all_of(parameters.begin(), parameters.end(), [&](std::size_t parameter) {
      return columns_.at(parameter, trial) == columns_.place(parameter, point[parameter]);
    });
  });
}

}  // namespace fettle::search
