#include "search/rungs/perturb.h"

#include <algorithm>
#include <cmath>

namespace fettle::search {
namespace {

constexpr double kShare = 0.2;          // of a value, up or down
constexpr double kLeastOfRange = 0.05;  // so that values near 0 move, too
constexpr double kMostOfRange = 0.2;    // so that values far from 0 stay between narrow bounds

// Whether the choices are numbers that only rise or only fall.
bool is_ordered(const Dimension& dimension) {
  if (dimension.cells() < 2) return false;
  double sign = 0;
  for (std::uint64_t cell = 0; cell < dimension.cells(); ++cell) {
    const Json value = dimension.value(static_cast<double>(cell));
    if (!value.is_number()) return false;
    if (cell == 0) continue;
    const double rise =
        value.as_double() - dimension.value(static_cast<double>(cell - 1)).as_double();
    // The first step gives the direction, which every step must have.
    if (cell == 1) sign = rise;
    if (!(rise * sign > 0)) return false;
  }
  return true;
}

// Returns the distance by which a number moves.
double distance(const api::Parameter& parameter, double value) {
  if (parameter.scale == api::Scale::kLog) return kShare * value;
  const double range = parameter.max - parameter.min;
  return std::clamp(kShare * std::abs(value), kLeastOfRange * range, kMostOfRange * range);
}

double move_cell(double cell, double cells, bool up) {
  return std::clamp(cell + (up ? 1 : -1), 0.0, static_cast<double>(cells) - 1);
}

double move(const Dimension& dimension, const api::Parameter& parameter, double at, bool up) {
  const auto cells = static_cast<double>(dimension.cells());
  if (dimension.categorical()) return is_ordered(dimension) ? move_cell(at, cells, up) : at;
  const double value = dimension.value(at).as_double();
  const double by = (up ? 1 : -1) * distance(parameter, value);
  if (dimension.continuous()) return std::clamp(value + by, parameter.min, parameter.max);
  if (dimension.cells() < 2) return at;
  // A lattice has equal steps, on a logarithmic scale as well.
  const double step = dimension.value(1).as_double() - dimension.value(0).as_double();
  const double to = std::clamp(std::round(at + by / step), 0.0, cells - 1);
  return to == at ? move_cell(at, cells, up) : to;
}

}  // namespace

Point perturb(const Space& space, const std::vector<api::Parameter>& parameters, const Point& point,
              double resample, Random& random) {
  Point out(space.dimensions(), kInactive);
  for (std::size_t i = 0; i < out.size(); ++i) {
    // The same number of draws whatever is active, so that one value does not depend on others.
    const bool is_new = random.uniform() < resample;
    const bool up = random.uniform() < 0.5;
    const double anywhere = random.uniform();
    // A condition is on an earlier parameter, whose value is already in `out`.
    if (!space.active(i, out)) continue;
    const Dimension& dimension = space.dimension(i);
    const bool draws = is_new || !is_active(point[i]);
    out[i] = draws ? dimension.from_unit(anywhere) : move(dimension, parameters[i], point[i], up);
  }
  return out;
}

}  // namespace fettle::search
