#include "search/samplers/parzen.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "search/maths/normal.h"

namespace fettle::search {
namespace {

constexpr double kPriorCentre = 0.5;
constexpr double kPriorSigma = 1.0;
constexpr double kPriorWeight = 1.0;
constexpr std::size_t kFullWeight = 25;  // newest trials with weight 1
constexpr double kNoMassBeyond = 39;     // in sigmas: the mass is below kSmallestMass
constexpr double kNarrowCell = 0.1;      // in sigmas: the density is constant over the cell
constexpr int kMaxDraws = 100;           // at least a third of the draws fall within the interval
constexpr double kNegligible = -30;      // logarithm of a negligible share of a sum
constexpr std::size_t kMaxMemo = 64;     // cells of an axis whose masses are kept

// A kernel's width is a share of the gap to its farther neighbour, within bounds; an outermost
// kernel has only one neighbour.
std::vector<double> sigmas_of(const std::vector<double>& centres,
                              const std::vector<std::uint32_t>& ascending,
                              const KernelWidths& widths) {
  const std::size_t n = centres.size();
  double narrowest = widths.narrowest;
  if (widths.closing_in) narrowest = std::max(narrowest, 1 / (static_cast<double>(n) + 2));
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double centre = centres[ascending[i]];
    // A single kernel has the farther end of the interval in the place of a neighbour.
    double gap = n == 1 ? std::max(centre, 1 - centre) : 0;
    if (i > 0) gap = std::max(gap, centre - centres[ascending[i - 1]]);
    if (i + 1 < n) gap = std::max(gap, centres[ascending[i + 1]] - centre);
    out[ascending[i]] = std::clamp(widths.share_of_gap * gap, narrowest, 1.0);
  }
  return out;
}

// The newest kFullWeight trials have weight 1, the oldest has 1/n, with a linear ramp between.
std::vector<double> weights_by_age(std::size_t trials) {
  std::vector<double> out(trials, 1.0);
  if (trials <= kFullWeight) return out;
  const std::size_t ramp = trials - kFullWeight;
  const double oldest = 1.0 / static_cast<double>(trials);
  for (std::size_t i = 0; i < ramp; ++i) {
    const double share = ramp > 1 ? static_cast<double>(i) / static_cast<double>(ramp - 1) : 0;
    out[i] = oldest + (1 - oldest) * share;
  }
  return out;
}

}  // namespace

Parzen::Parzen(const Space& space, const std::vector<std::size_t>& parameters,
               const Columns& columns, const std::vector<std::int64_t>& trials,
               std::vector<double> weights, KernelWidths widths)
    : space_(space), widths_(widths), trials_(trials.size()) {
  if (weights.empty()) weights = weights_by_age(trials_);
  CHECK(weights.size() == trials_, "every trial has a weight");
  weights.push_back(kPriorWeight);
  double sum = 0;
  for (const double weight : weights) cumulative_.push_back(sum += weight);
  for (const double weight : weights) base_.push_back(std::log(weight / sum));
  axes_.reserve(parameters.size());
  for (const std::size_t parameter : parameters) add_axis(parameter, columns, trials);
}

void Parzen::add_axis(std::size_t parameter, const Columns& columns,
                      const std::vector<std::int64_t>& trials) {
  std::vector<double> centres;
  centres.reserve(trials.size());
  for (const std::int64_t trial : trials) {
    centres.push_back(columns.at(parameter, trial));
    CHECK(is_active(centres.back()), "a trial of the group has all its parameters");
  }
  Axis& axis = axes_.emplace_back();
  axis.parameter = parameter;
  if (space_.dimension(parameter).categorical()) {
    axis.choices = std::move(centres);
    return;
  }
  const std::vector<std::uint32_t> ascending = columns.ascending(parameter, trials);
  const std::vector<double> sigmas = sigmas_of(centres, ascending, widths_);
  axis.kernels.reserve(trials_ + 1);
  for (std::size_t k = 0; k < trials_; ++k) axis.kernels.push_back({centres[k], sigmas[k]});
  axis.kernels.push_back({kPriorCentre, kPriorSigma});
  if (space_.dimension(parameter).continuous()) {
    add_continuous(axis, columns, trials);
  } else {
    add_discrete(axis, ascending);
  }
}

void Parzen::add_continuous(Axis& axis, const Columns& columns,
                            const std::vector<std::int64_t>& trials) {
  axis.scales.reserve(axis.kernels.size());
  for (std::size_t k = 0; k < axis.kernels.size(); ++k) {
    const auto& [centre, sigma] = axis.kernels[k];
    axis.scales.push_back(1 / (sigma * std::numbers::sqrt2));
    // Columns has computed this scale for kernels of width kNarrowest in its window.
    const bool kept = k < trials_ && sigma == Columns::kNarrowest && columns.in_window(trials[k]);
    base_[k] += kept ? columns.narrow_log_scale(axis.parameter, trials[k])
                     : unit_normal_log_scale(centre, sigma);
  }
}

// Evaluates equal kernels once. Kernels of one centre are neighbours along the axis, and only the
// first and the last of them differ in width.
void Parzen::add_discrete(Axis& axis, const std::vector<std::uint32_t>& ascending) {
  axis.slots.resize(axis.kernels.size());
  std::size_t first = 0;  // the first index in `distinct` with this centre
  // Sets the slot of kernel k. Only earlier kernels of the same centre, from `first` on, can equal
  // it. The prior, which comes last, may duplicate one, which is harmless.
  const auto add = [&](std::size_t k) {
    const Kernel& kernel = axis.kernels[k];
    if (first < axis.distinct.size() && axis.distinct[first].centre != kernel.centre) {
      first = axis.distinct.size();
    }
    const auto at = std::find(axis.distinct.begin() + static_cast<std::ptrdiff_t>(first),
                              axis.distinct.end(), kernel);
    axis.slots[k] = static_cast<std::uint32_t>(at - axis.distinct.begin());
    if (at != axis.distinct.end()) return;
    axis.distinct.push_back(kernel);
    axis.log_scales.push_back(unit_normal_log_scale(kernel.centre, kernel.sigma));
  };
  for (const std::uint32_t k : ascending) add(k);
  add(axis.kernels.size() - 1);
}

// The share of a smoothed indicator for the kernel's own choice (`same`) or for each other one.
double Parzen::choice_share(const Axis& axis, bool same) const {
  const double extra = 1.0 / static_cast<double>(trials_ + 1);
  const double choices = static_cast<double>(space_.dimension(axis.parameter).cells());
  return ((same ? 1.0 : 0.0) + extra) / (1.0 + choices * extra);
}

void Parzen::draw(Random& random, Point& point) const {
  const double at = random.uniform() * cumulative_.back();
  // Kernel trials_ is the prior; rounding may take `at` to the end of the sums.
  const std::size_t kernel = std::min<std::size_t>(
      static_cast<std::size_t>(std::upper_bound(cumulative_.begin(), cumulative_.end(), at) -
                               cumulative_.begin()),
      trials_);
  for (const Axis& axis : axes_) {
    const Dimension& dimension = space_.dimension(axis.parameter);
    double& coordinate = point[axis.parameter];
    if (dimension.categorical()) {
      const auto choices = dimension.cells();
      // Keeps the indicator's choice except for the smoothing, which is uniform.
      const double smoothing = static_cast<double>(choices) * choice_share(axis, /*same=*/false);
      const bool keep = kernel < trials_ && random.uniform() >= smoothing;
      coordinate = keep ? axis.choices[kernel] : static_cast<double>(random.below(choices));
      continue;
    }
    const auto& [centre, sigma] = axis.kernels[kernel];
    double unit = centre + sigma * random.normal();
    for (int i = 1; i < kMaxDraws && !(unit >= 0 && unit <= 1); ++i) {
      unit = centre + sigma * random.normal();
    }
    coordinate = dimension.from_unit(unit);  // clamps `unit` if no draw fell within
  }
}

std::vector<double> Parzen::log_masses_in(const Axis& axis, double cell) const {
  const Dimension::Interval interval = space_.dimension(axis.parameter).to_unit(cell);
  const double width = interval.high - interval.low;
  const double log_width = std::log(width);
  std::vector<double> out(axis.distinct.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto& [centre, sigma] = axis.distinct[i];
    const double z = (interval.centre() - centre) / sigma;
    if (width < kNarrowCell * sigma) {
      out[i] = axis.log_scales[i] - 0.5 * z * z + log_width;
      continue;
    }
    const bool far = std::abs(z) - 0.5 * width / sigma > kNoMassBeyond;
    const double mass =
        far ? kSmallestMass : normal_mass(interval.low, interval.high, centre, sigma);
    // log_scales belong to exp(-z^2 / 2), whose integral is the normal's mass times sigma sqrt(2
    // pi).
    out[i] = std::log(mass * sigma) + 0.5 * std::log(2 * std::numbers::pi) + axis.log_scales[i];
  }
  return out;
}

void Parzen::add_continuous_logs(const Axis& axis, const Lanes& coordinates,
                                 std::vector<Lanes>& logs) const {
  Lanes units{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    units[lane] = space_.dimension(axis.parameter).to_unit(coordinates[lane]).low;
  }
  for (std::size_t k = 0; k < logs.size(); ++k) {
    const double centre = axis.kernels[k].centre;
    const double scale = axis.scales[k];
    Lanes out = logs[k];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double z = (units[lane] - centre) * scale;
      out[lane] -= z * z;  // base_ contains the normalisation (add_continuous)
    }
    logs[k] = out;
  }
}

void Parzen::add_choice_logs(const Axis& axis, Lanes coordinates, std::vector<Lanes>& logs) const {
  const double same = std::log(choice_share(axis, /*same=*/true));
  const double other = std::log(choice_share(axis, /*same=*/false));
  const double prior = -std::log(static_cast<double>(space_.dimension(axis.parameter).cells()));
  for (std::size_t k = 0; k < trials_; ++k) {
    const double choice = axis.choices[k];
    Lanes out = logs[k];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      out[lane] += choice == coordinates[lane] ? same : other;
    }
    logs[k] = out;
  }
  for (double& log : logs.back()) log += prior;  // the last kernel, uniform over the choices
}

void Parzen::add_discrete_logs(const Axis& axis, const Lanes& coordinates,
                               std::vector<CellMasses>& memo, std::vector<Lanes>& logs) const {
  std::vector<Lanes> log_masses(axis.distinct.size());
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const double cell = coordinates[lane];
    auto known = std::find_if(memo.begin(), memo.end(),
                              [cell](const CellMasses& entry) { return entry.cell == cell; });
    if (known == memo.end()) {
      if (memo.size() == kMaxMemo) memo.clear();
      known = memo.insert(memo.end(), {cell, log_masses_in(axis, cell)});
    }
    for (std::size_t i = 0; i < log_masses.size(); ++i) {
      log_masses[i][lane] = known->log_masses[i];
    }
  }
  for (std::size_t k = 0; k < logs.size(); ++k) {
    const Lanes& log_mass = log_masses[axis.slots[k]];
    for (std::size_t lane = 0; lane < kLanes; ++lane) logs[k][lane] += log_mass[lane];
  }
}

void Parzen::add_logs(const Axis& axis, const Lanes& coordinates, std::vector<CellMasses>& memo,
                      std::vector<Lanes>& logs) const {
  const Dimension& dimension = space_.dimension(axis.parameter);
  if (dimension.categorical()) {
    add_choice_logs(axis, coordinates, logs);
  } else if (dimension.continuous()) {
    add_continuous_logs(axis, coordinates, logs);
  } else {
    add_discrete_logs(axis, coordinates, memo, logs);
  }
}

// Returns the logarithms of the sums over all kernels.
Parzen::Lanes Parzen::log_sums(const std::vector<Lanes>& logs) {
  Lanes largest = logs.back();
  for (const Lanes& row : logs) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      largest[lane] = std::max(largest[lane], row[lane]);
    }
  }
  Lanes out{};
  for (const Lanes& row : logs) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double log = row[lane] - largest[lane];
      if (log > kNegligible) out[lane] += std::exp(log);  // skips exp() if negligible
    }
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    out[lane] = largest[lane] + std::log(out[lane]);
  }
  return out;
}

std::vector<double> Parzen::log_densities(const std::vector<Point>& points) const {
  std::vector<double> out;
  out.reserve(points.size());
  std::vector<Lanes> logs(base_.size());
  std::vector<std::vector<CellMasses>> memo(axes_.size());
  for (std::size_t begin = 0; begin < points.size(); begin += kLanes) {
    for (std::size_t k = 0; k < base_.size(); ++k) logs[k].fill(base_[k]);
    const std::size_t count = std::min(kLanes, points.size() - begin);
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      Lanes coordinates{};  // spare lanes evaluate the first point again
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        coordinates[lane] = points[begin + (lane < count ? lane : 0)][axes_[a].parameter];
      }
      add_logs(axes_[a], coordinates, memo[a], logs);
    }
    const Lanes sums = log_sums(logs);
    out.insert(out.end(), sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return out;
}

}  // namespace fettle::search
