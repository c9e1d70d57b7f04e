#include "search/transfer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "search/maths/loss.h"

namespace fettle::search {
namespace {

constexpr std::size_t kNeighbours = 3;  // priors that predict the value at a point
constexpr double kTiny = 1e-9;          // keeps the weight of an identical point finite

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double sign(double a, double b) { return a < b ? -1 : (a > b ? 1 : 0); }

// Kendall's tau-a between the two: from -1 (reversed) to 1 (the same order).
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double agreement = 0;
  double pairs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      agreement += sign(a[i], a[j]) * sign(b[i], b[j]);
      pairs += 1;
    }
  }
  return pairs > 0 ? agreement / pairs : 0;
}

}  // namespace

Transfer::Transfer(const Space& space, const std::vector<api::Objective>& objectives,
                   std::vector<Observation> priors)
    : space_(space), objectives_(objectives), priors_(std::move(priors)) {
  best_first_.resize(priors_.size());
  std::iota(best_first_.begin(), best_first_.end(), std::size_t{0});
  const double direction = loss_sign(objectives_);
  std::stable_sort(best_first_.begin(), best_first_.end(), [&](std::size_t a, std::size_t b) {
    return direction * priors_[a].values[0] < direction * priors_[b].values[0];
  });
  clear();
}

void Transfer::clear() {
  results_.clear();
  next_check_ = kFirstCheck;
  in_force_.resize(priors_.size());
  std::iota(in_force_.begin(), in_force_.end(), std::size_t{0});
  shifts_.assign(objectives_.size(), 0);
}

bool Transfer::add(Observation result) {
  if (priors_.empty() || results_.size() >= kOutweighed) return false;
  results_.push_back(std::move(result));
  if (results_.size() < next_check_) return false;
  next_check_ *= 2;
  compare();
  return true;
}

// Returns the Euclidean distance on the unit cube; a choice that differs counts as one edge, and so
// does a parameter that only one point has.
double Transfer::distance(const Point& a, const Point& b) const {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both = is_active(a[i]) && is_active(b[i]);
    if (!is_active(a[i]) && !is_active(b[i])) continue;
    const Dimension& dimension = space_.dimension(i);
    double apart = 1;
    if (both && dimension.categorical()) apart = a[i] == b[i] ? 0 : 1;
    if (both && !dimension.categorical()) {
      apart = dimension.to_unit(a[i]).centre() - dimension.to_unit(b[i]).centre();
    }
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

// Predicts the values at a point from the nearest priors, weighted by inverse distance.
std::vector<double> Transfer::predict(const Point& point) const {
  std::vector<std::pair<double, std::size_t>> near;
  for (std::size_t i = 0; i < priors_.size(); ++i) {
    near.emplace_back(distance(point, priors_[i].point), i);
  }
  const std::size_t count = std::min(kNeighbours, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  std::vector<double> out(objectives_.size(), 0);
  double weights = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double weight = 1 / (near[k].first + kTiny);
    weights += weight;
    for (std::size_t o = 0; o < out.size(); ++o) {
      out[o] += weight * priors_[near[k].second].values[o];
    }
  }
  for (double& value : out) value /= weights;  // not 0: add() compares only if there are priors
  return out;
}

void Transfer::compare() {
  std::vector<std::vector<double>> found(objectives_.size());
  std::vector<std::vector<double>> expected(objectives_.size());
  for (const Observation& result : results_) {
    const std::vector<double> said = predict(result.point);
    for (std::size_t o = 0; o < said.size(); ++o) {
      found[o].push_back(result.values[o]);
      expected[o].push_back(said[o]);
    }
  }
  double trust = 0;
  for (std::size_t o = 0; o < found.size(); ++o) {
    std::vector<double> off(found[o].size());
    for (std::size_t i = 0; i < off.size(); ++i) off[i] = found[o][i] - expected[o][i];
    shifts_[o] = median(std::move(off));
    trust += rank_correlation(expected[o], found[o]) / static_cast<double>(found.size());
  }
  const auto count = static_cast<double>(results_.size());  // at least kFirstCheck: see add()
  // The standard error of tau-a over `count` results if the two are independent.
  const double chance = std::sqrt(2 * (2 * count + 5) / (9 * count * (count - 1)));
  const double left = 1 - count / static_cast<double>(kOutweighed);
  const double share = std::clamp((trust - chance) * left, 0.0, 1.0);
  const auto kept = static_cast<std::size_t>(share * static_cast<double>(priors_.size()));
  in_force_.clear();
  for (std::size_t k = 0; k < kept; ++k) {  // spread evenly over the ranks
    in_force_.push_back(best_first_[k * priors_.size() / kept]);
  }
  std::sort(in_force_.begin(), in_force_.end());
}

}  // namespace fettle::search
