#include "search/gp/tpe_prior.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace fettle::search::gp {
namespace {

constexpr std::int64_t kFirst = 10;   // with fewer trials it does not count
constexpr double kWhole = 20;         // up to this number of trials the weight is 1
constexpr double kLeastWeight = 0.1;  // below this weight it is not worth its time
// Step of the finite differences along a continuum. Every kernel of a density is wider.
constexpr double kStep = 1e-4;

}  // namespace

TpePrior::TpePrior(const Space& space, const std::vector<api::Objective>& objectives, bool wanted)
    : space_(space) {
  if (wanted) ratio_.emplace(space, objectives);
}

void TpePrior::add_trial(const Point* point) {
  if (ratio_) ratio_->add_trial(point);
}

void TpePrior::remove_trial() {
  if (ratio_) ratio_->remove_trial();
}

void TpePrior::add_event(const Event& event) {
  if (ratio_) ratio_->add_event(event);
}

void TpePrior::reset() {
  if (ratio_) ratio_->reset();
  weight_ = 0;
}

void TpePrior::update(std::int64_t begun) {
  weight_ = 0;
  if (!ratio_ || begun < kFirst || ratio_->ended() < DensityRatio::kEnough) return;
  const double weight = std::min(1.0, kWhole / static_cast<double>(begun));
  if (weight < kLeastWeight) return;
  weight_ = weight;
  ratio_->fit();
}

std::string TpePrior::words() const {
  return Json(std::round(100 * weight_) / 100).dump() + " times the " + DensityRatio::kWords;
}

double TpePrior::at(const Point& point) const {
  return weight_ * ratio_->log_ratios({point}).front();
}

// Central differences: all points are evaluated in one call. A parameter with many cells is treated
// as a continuum, as everywhere else that slopes are needed.
double TpePrior::at(const Inputs& points, Index row, Eigen::VectorXd& slope) const {
  Point here(space_.dimensions());
  for (std::size_t i = 0; i < here.size(); ++i) {
    const Dimension& dimension = space_.dimension(i);
    const double place = points.at(row, static_cast<Index>(i));
    const bool exists = points.active(row, static_cast<Index>(i)) > 0;
    here[i] = dimension.categorical() ? place : dimension.from_unit(place);
    if (!exists) here[i] = kInactive;
  }
  std::vector<Point> around{here};
  std::vector<Index> axes;
  std::vector<double> apart;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const Dimension& dimension = space_.dimension(i);
    if (!is_active(here[i]) || !is_smooth(dimension)) continue;
    const auto axis = static_cast<Index>(i);
    const double step = dimension.continuous() ? kStep : 1 / static_cast<double>(dimension.cells());
    const double above = std::min(points.at(row, axis) + step, 1.0);
    const double below = std::max(points.at(row, axis) - step, 0.0);
    axes.push_back(axis);
    apart.push_back(above - below);
    for (const double place : {above, below}) {
      around.push_back(here);
      around.back()[i] = dimension.from_unit(place);
    }
  }
  // First at the point itself, then at the two points of each axis: above, below.
  const std::vector<double> logs = ratio_->log_ratios(around);
  slope.setZero(static_cast<Index>(here.size()));
  for (std::size_t k = 0; k < axes.size(); ++k) {
    slope[axes[k]] = weight_ * (logs[1 + 2 * k] - logs[2 + 2 * k]) / apart[k];
  }
  return weight_ * logs[0];
}

void TpePrior::set_candidates(const std::vector<Candidate>& candidates) {
  std::vector<Point> points;
  points.reserve(candidates.size());
  for (const Candidate& candidate : candidates) points.push_back(candidate.point);
  candidates_ = ratio_->log_ratios(points);
}

double TpePrior::at_candidate(Index row) const {
  return weight_ * candidates_[static_cast<std::size_t>(row)];
}

std::vector<Point> TpePrior::draws(std::size_t count, Random& random) const {
  std::vector<Point> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(ratio_->choose([&](std::size_t group) { return ratio_->draw(group, random); }));
  }
  return out;
}

}  // namespace fettle::search::gp
