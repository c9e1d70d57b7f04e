#include "search/parzen.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace fettle::search {
namespace {

constexpr double kPriorCentre = 0.5;
constexpr double kPriorSigma = 1.0;
constexpr double kSigma = 0.2;            // of one kernel alone, of the unit interval
constexpr double kNarrowest = 100;        // no kernel is narrower than one part in so many
constexpr std::size_t kFullWeight = 25;   // newest points that weigh 1
constexpr double kSmallestMass = 1e-300;  // a normal's mass far out, so that its logarithm exists
constexpr double kNarrowCell = 0.1;       // in sigmas: there the density is constant over a cell
constexpr int kMaxDraws = 100;            // at least a third of the draws are within the interval
constexpr double kNegligible = -40;       // logarithm of a share that a sum does not notice

// Mass of a normal between low and high, without cancellation in either tail.
double normal_mass(double low, double high, double centre, double sigma) {
  const double a = (low - centre) / (sigma * std::numbers::sqrt2);
  const double b = (high - centre) / (sigma * std::numbers::sqrt2);
  const double mass = a > 0 ? std::erfc(a) - std::erfc(b) : std::erfc(-b) - std::erfc(-a);
  return std::max(0.5 * mass, kSmallestMass);
}

double log_normal_density(double x, double centre, double sigma) {
  const double z = (x - centre) / sigma;
  return -0.5 * z * z - std::log(sigma) - 0.5 * std::log(2 * std::numbers::pi);
}

double bandwidth(std::size_t points, std::size_t parameters) {
  const double n = static_cast<double>(std::max<std::size_t>(points, 1));
  const double sigma = kSigma * std::pow(n, -1.0 / (static_cast<double>(parameters) + 4));
  return std::clamp(sigma, 1 / std::min(kNarrowest, 1 + static_cast<double>(points)), 1.0);
}

// The newest kFullWeight points weigh 1, the oldest 1/n, with a straight line between; prior 1.
std::vector<double> weights_of(std::size_t points) {
  std::vector<double> out(points + 1, 1.0);
  if (points <= kFullWeight) return out;
  const std::size_t ramp = points - kFullWeight;
  const double oldest = 1.0 / static_cast<double>(points);
  for (std::size_t i = 0; i < ramp; ++i) {
    const double share = ramp > 1 ? static_cast<double>(i) / static_cast<double>(ramp - 1) : 0;
    out[i] = oldest + (1 - oldest) * share;
  }
  return out;
}

}  // namespace

Parzen::Parzen(const Space& space, const std::vector<std::size_t>& parameters,
               const std::vector<const Point*>& points)
    : space_(space),
      kernels_(points.size() + 1),
      sigma_(bandwidth(points.size(), parameters.size())) {
  const std::vector<double> weights = weights_of(points.size());
  double sum = 0;
  for (const double weight : weights) cumulative_.push_back(sum += weight);
  for (const double weight : weights) base_.push_back(std::log(weight / sum));
  for (const std::size_t parameter : parameters) add_axis(parameter, points);
}

void Parzen::add_axis(std::size_t parameter, const std::vector<const Point*>& points) {
  const Dimension& dimension = space_.dimension(parameter);
  Axis axis;
  axis.parameter = parameter;
  for (const Point* point : points) {
    const double coordinate = (*point)[parameter];
    CHECK(is_active(coordinate), "a point of the group has all its parameters");
    axis.centres.push_back(dimension.categorical() ? coordinate
                                                   : dimension.to_unit(coordinate).centre());
  }
  if (dimension.continuous()) {
    normalise_continuous(axis);
  } else {
    axis.distinct = axis.centres;
    std::sort(axis.distinct.begin(), axis.distinct.end());
    axis.distinct.erase(std::unique(axis.distinct.begin(), axis.distinct.end()),
                        axis.distinct.end());
    for (const double centre : axis.centres) {
      const auto at = std::lower_bound(axis.distinct.begin(), axis.distinct.end(), centre);
      axis.slots.push_back(static_cast<std::uint32_t>(at - axis.distinct.begin()));
    }
  }
  axes_.push_back(std::move(axis));
}

void Parzen::normalise_continuous(const Axis& axis) {
  for (std::size_t k = 0; k + 1 < kernels_; ++k) {
    base_[k] +=
        log_normal_density(0, 0, sigma_) - std::log(normal_mass(0, 1, axis.centres[k], sigma_));
  }
  base_.back() += log_normal_density(0, 0, kPriorSigma) -
                  std::log(normal_mass(0, 1, kPriorCentre, kPriorSigma));
}

// Of a smoothed indicator: what the kernel's own choice has, and what each other one.
double Parzen::choice_share(const Axis& axis, bool same) const {
  const double extra = 1.0 / static_cast<double>(kernels_);
  const double choices = static_cast<double>(space_.dimension(axis.parameter).cells());
  return ((same ? 1.0 : 0.0) + extra) / (1.0 + choices * extra);
}

void Parzen::draw(Random& random, Point& point) const {
  const double at = random.uniform() * cumulative_.back();
  const std::size_t kernel = std::min<std::size_t>(
      static_cast<std::size_t>(std::upper_bound(cumulative_.begin(), cumulative_.end(), at) -
                               cumulative_.begin()),
      kernels_ - 1);
  const bool prior = kernel + 1 == kernels_;
  for (const Axis& axis : axes_) {
    const Dimension& dimension = space_.dimension(axis.parameter);
    double& coordinate = point[axis.parameter];
    if (dimension.categorical()) {
      const auto choices = dimension.cells();
      // The indicator keeps its choice but for the smoothing, which is uniform.
      const double smoothing = static_cast<double>(choices) * choice_share(axis, false);
      const bool keep = !prior && random.uniform() >= smoothing;
      coordinate = keep ? axis.centres[kernel] : static_cast<double>(random.below(choices));
      continue;
    }
    const double centre = prior ? kPriorCentre : axis.centres[kernel];
    const double sigma = prior ? kPriorSigma : sigma_;
    double unit = centre + sigma * random.normal();
    for (int i = 1; i < kMaxDraws && !(unit >= 0 && unit <= 1); ++i) {
      unit = centre + sigma * random.normal();
    }
    coordinate = dimension.from_unit(unit);
  }
}

// Of a discrete value under a truncated normal.
double Parzen::log_mass(const Axis& axis, double centre, double sigma, double coordinate) const {
  const Dimension::Interval cell = space_.dimension(axis.parameter).to_unit(coordinate);
  const double width = cell.high - cell.low;
  const double all = std::log(normal_mass(0, 1, centre, sigma));
  if (width < kNarrowCell * sigma) {
    return log_normal_density(cell.centre(), centre, sigma) + std::log(width) - all;
  }
  return std::log(normal_mass(cell.low, cell.high, centre, sigma)) - all;
}

// Adds the share of a discrete parameter to each kernel; equal centres are computed once.
void Parzen::add_discrete(const Axis& axis, double coordinate, std::vector<double>& logs) const {
  const Dimension& dimension = space_.dimension(axis.parameter);
  std::vector<double> shares;
  shares.reserve(axis.distinct.size());
  for (const double centre : axis.distinct) {
    shares.push_back(dimension.categorical() ? std::log(choice_share(axis, centre == coordinate))
                                             : log_mass(axis, centre, sigma_, coordinate));
  }
  for (std::size_t k = 0; k + 1 < kernels_; ++k) logs[k] += shares[axis.slots[k]];
  logs.back() += dimension.categorical() ? -std::log(static_cast<double>(dimension.cells()))
                                         : log_mass(axis, kPriorCentre, kPriorSigma, coordinate);
}

double Parzen::log_density(const Point& point) const {
  std::vector<double> logs = base_;
  for (const Axis& axis : axes_) {
    const double coordinate = point[axis.parameter];
    if (!space_.dimension(axis.parameter).continuous()) {
      add_discrete(axis, coordinate, logs);
      continue;
    }
    const double unit = space_.dimension(axis.parameter).to_unit(coordinate).low;
    const double scale = -0.5 / (sigma_ * sigma_);
    for (std::size_t k = 0; k + 1 < kernels_; ++k) {
      const double distance = unit - axis.centres[k];
      logs[k] += scale * distance * distance;
    }
    const double distance = (unit - kPriorCentre) / kPriorSigma;
    logs.back() -= 0.5 * distance * distance;
  }
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) {
    if (log - largest > kNegligible) sum += std::exp(log - largest);
  }
  return largest + std::log(sum);
}

}  // namespace fettle::search
