#include "search/parzen.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"

namespace fettle::search {
namespace {

constexpr double kPriorCentre = 0.5;
constexpr double kPriorSigma = 1.0;
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

// A kernel is as wide as the gap to the farther of its neighbours, the outermost ones as the gap to
// their only one, within bounds that close in as points are added.
std::vector<double> widths(const std::vector<double>& centres) {
  const std::size_t n = centres.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return centres[a] < centres[b]; });
  const double narrowest = 1 / std::min(kNarrowest, static_cast<double>(n) + 2);
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double centre = centres[order[i]];
    double gap = n == 1 ? std::max(centre, 1 - centre) : 0;
    if (i > 0) gap = std::max(gap, centre - centres[order[i - 1]]);
    if (i + 1 < n) gap = std::max(gap, centres[order[i + 1]] - centre);
    out[order[i]] = std::clamp(gap, narrowest, 1.0);
  }
  return out;
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
    : space_(space), points_(points.size()) {
  const std::vector<double> weights = weights_of(points.size());
  double sum = 0;
  for (const double weight : weights) cumulative_.push_back(sum += weight);
  for (const double weight : weights) base_.push_back(std::log(weight / sum));
  for (const std::size_t parameter : parameters) add_axis(parameter, points);
}

void Parzen::add_axis(std::size_t parameter, const std::vector<const Point*>& points) {
  const Dimension& dimension = space_.dimension(parameter);
  std::vector<double> centres;
  for (const Point* point : points) {
    const double coordinate = (*point)[parameter];
    CHECK(is_active(coordinate), "a point of the group has all its parameters");
    centres.push_back(dimension.categorical() ? coordinate
                                              : dimension.to_unit(coordinate).centre());
  }
  std::vector<double> sigmas(points_, 0.0);
  if (!dimension.categorical()) sigmas = widths(centres);
  Axis axis;
  axis.parameter = parameter;
  for (std::size_t k = 0; k < points_; ++k) axis.kernels.push_back({centres[k], sigmas[k]});
  if (dimension.continuous()) {
    normalise_continuous(axis);
  } else {
    axis.distinct = axis.kernels;
    std::sort(axis.distinct.begin(), axis.distinct.end());
    axis.distinct.erase(std::unique(axis.distinct.begin(), axis.distinct.end()),
                        axis.distinct.end());
    for (const Kernel& kernel : axis.kernels) {
      const auto at = std::lower_bound(axis.distinct.begin(), axis.distinct.end(), kernel);
      axis.slots.push_back(static_cast<std::uint32_t>(at - axis.distinct.begin()));
    }
  }
  axes_.push_back(std::move(axis));
}

void Parzen::normalise_continuous(const Axis& axis) {
  const auto log_scale = [](double centre, double sigma) {
    return log_normal_density(0, 0, sigma) - std::log(normal_mass(0, 1, centre, sigma));
  };
  for (std::size_t k = 0; k < points_; ++k) {
    base_[k] += log_scale(axis.kernels[k].centre, axis.kernels[k].sigma);
  }
  base_.back() += log_scale(kPriorCentre, kPriorSigma);
}

// Of a smoothed indicator: what the kernel's own choice has, and what each other one.
double Parzen::choice_share(const Axis& axis, bool same) const {
  const double extra = 1.0 / static_cast<double>(points_ + 1);
  const double choices = static_cast<double>(space_.dimension(axis.parameter).cells());
  return ((same ? 1.0 : 0.0) + extra) / (1.0 + choices * extra);
}

void Parzen::draw(Random& random, Point& point) const {
  const double at = random.uniform() * cumulative_.back();
  const std::size_t kernel = std::min<std::size_t>(
      static_cast<std::size_t>(std::upper_bound(cumulative_.begin(), cumulative_.end(), at) -
                               cumulative_.begin()),
      points_);
  const bool prior = kernel == points_;
  for (const Axis& axis : axes_) {
    const Dimension& dimension = space_.dimension(axis.parameter);
    double& coordinate = point[axis.parameter];
    if (dimension.categorical()) {
      const auto choices = dimension.cells();
      // The indicator keeps its choice but for the smoothing, which is uniform.
      const double smoothing = static_cast<double>(choices) * choice_share(axis, false);
      const bool keep = !prior && random.uniform() >= smoothing;
      coordinate = keep ? axis.kernels[kernel].centre : static_cast<double>(random.below(choices));
      continue;
    }
    const double centre = prior ? kPriorCentre : axis.kernels[kernel].centre;
    const double sigma = prior ? kPriorSigma : axis.kernels[kernel].sigma;
    double unit = centre + sigma * random.normal();
    for (int i = 1; i < kMaxDraws && !(unit >= 0 && unit <= 1); ++i) {
      unit = centre + sigma * random.normal();
    }
    coordinate = dimension.from_unit(unit);
  }
}

// Of a discrete value under a truncated normal.
double Parzen::log_mass(const Axis& axis, const Kernel& kernel, double coordinate) const {
  const double centre = kernel.centre;
  const double sigma = kernel.sigma;
  const Dimension::Interval cell = space_.dimension(axis.parameter).to_unit(coordinate);
  const double width = cell.high - cell.low;
  const double all = std::log(normal_mass(0, 1, centre, sigma));
  if (width < kNarrowCell * sigma) {
    return log_normal_density(cell.centre(), centre, sigma) + std::log(width) - all;
  }
  return std::log(normal_mass(cell.low, cell.high, centre, sigma)) - all;
}

void Parzen::add_continuous(const Axis& axis, double coordinate, std::vector<double>& logs) const {
  const double unit = space_.dimension(axis.parameter).to_unit(coordinate).low;
  const auto exponent = [unit](double centre, double sigma) {
    const double z = (unit - centre) / sigma;
    return -0.5 * z * z;
  };
  for (std::size_t k = 0; k < points_; ++k) {
    logs[k] += exponent(axis.kernels[k].centre, axis.kernels[k].sigma);
  }
  logs.back() += exponent(kPriorCentre, kPriorSigma);
}

// Equal kernels are computed once.
void Parzen::add_discrete(const Axis& axis, double coordinate, std::vector<double>& logs) const {
  const Dimension& dimension = space_.dimension(axis.parameter);
  std::vector<double> shares;
  shares.reserve(axis.distinct.size());
  for (const Kernel& kernel : axis.distinct) {
    shares.push_back(dimension.categorical()
                         ? std::log(choice_share(axis, kernel.centre == coordinate))
                         : log_mass(axis, kernel, coordinate));
  }
  for (std::size_t k = 0; k < points_; ++k) logs[k] += shares[axis.slots[k]];
  logs.back() += dimension.categorical() ? -std::log(static_cast<double>(dimension.cells()))
                                         : log_mass(axis, {kPriorCentre, kPriorSigma}, coordinate);
}

double Parzen::log_density(const Point& point) const {
  std::vector<double> logs = base_;
  for (const Axis& axis : axes_) {
    const double coordinate = point[axis.parameter];
    if (space_.dimension(axis.parameter).continuous()) {
      add_continuous(axis, coordinate, logs);
    } else {
      add_discrete(axis, coordinate, logs);
    }
  }
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) {
    if (log - largest > kNegligible) sum += std::exp(log - largest);
  }
  return largest + std::log(sum);
}

}  // namespace fettle::search
