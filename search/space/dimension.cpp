#include "search/space/dimension.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace fettle::search {
namespace {

// Integers up to here are exact in a double.
constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53
// In steps. A range that is a multiple of the step except for rounding (0.1 + 2 * 0.1 > 0.3)
// includes its end.
constexpr double kStepTolerance = 1e-9;
// The relative error of a quotient of two doubles: about two units in the last place.
constexpr double kRounding = 4e-16;

std::string text(double number) { return Json(number).dump(); }

// The shortest decimal near `number`: 0.1 + 2 * 0.1 is meant to be 0.3, and printed so.
double tidy(double number) {
  std::array<char, 40> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                     std::chars_format::general, 15);
  double out = number;
  std::from_chars(buffer.data(), written.ptr, out);
  return out;
}

// a + t (b - a) without overflow, however far apart the bounds are.
double blend(double a, double b, double t) { return a * (1 - t) + b * t; }

}  // namespace

std::string canonical_scalar(const Json& value) {
  return value.is_number() ? Json(value.as_double()).dump() : value.dump();
}

Result<Dimension> Dimension::make(const api::Parameter& parameter) {
  Dimension out;
  switch (parameter.type) {
    case api::ParameterType::kDouble:
    case api::ParameterType::kInteger:
      FETTLE_TRY(out.set_range(parameter));
      break;
    case api::ParameterType::kCategorical:
      FETTLE_TRY(out.set_choices(parameter.values));
      break;
    case api::ParameterType::kBoolean:
      FETTLE_TRY(out.set_choices({Json(false), Json(true)}));
      break;
  }
  return out;
}

Status Dimension::set_range(const api::Parameter& parameter) {
  min_ = parameter.min;
  max_ = parameter.max;
  log_ = parameter.scale == api::Scale::kLog;
  integer_ = parameter.type == api::ParameterType::kInteger;
  if (!std::isfinite(min_) || !std::isfinite(max_)) {
    return invalid("bounds must be finite numbers; found " + text(min_) + " and " + text(max_));
  }
  if (min_ > max_) {
    return invalid("the lower bound " + text(min_) + " is above the upper bound " + text(max_));
  }
  if (log_ && min_ <= 0) {
    return invalid("a logarithmic scale needs a lower bound above 0; found " + text(min_));
  }
  // A range of one number is a lattice of one cell, whatever the step is.
  if (integer_ || parameter.step || min_ == max_) return set_lattice(parameter);
  if (log_) {
    log_low_ = std::log(min_);
    log_high_ = std::log(max_);
  }
  return success();
}

Status Dimension::set_lattice(const api::Parameter& parameter) {
  step_ = parameter.step.value_or(1);
  if (!std::isfinite(step_) || step_ <= 0) {
    return invalid("the step must be a number above 0; found " + text(step_));
  }
  if (integer_) {
    for (const double number : {min_, max_, step_}) {
      if (std::trunc(number) == number && std::abs(number) <= kMaxExactInteger) continue;
      return invalid("an integer parameter needs whole numbers up to 2^53; found " + text(number));
    }
  }
  const double steps = max_ / step_ - min_ / step_;  // the length of the range may overflow
  if (!(steps <= 2 * kMaxExactInteger)) {            // the number of integers from -2^53 to 2^53
    return invalid("the step " + text(step_) + " is too small for a range from " + text(min_) +
                   " to " + text(max_));
  }
  cells_ = static_cast<std::uint64_t>(steps + std::max(kStepTolerance, kRounding * steps)) + 1;
  if (integer_) {  // exact even if the tolerance exceeds a cell
    cells_ = static_cast<std::uint64_t>(std::floor((max_ - min_) / step_)) + 1;
  }
  if (log_) {
    // Half a step beyond either end, so that the first and last cell are as wide as the others; but
    // not so far down that a small minimum takes up most of the scale.
    const double last = number(static_cast<double>(cells_ - 1));
    log_low_ = std::log(std::max(min_ - 0.5 * step_, 0.5 * min_));
    log_high_ = std::log(last) + std::log1p(0.5 * step_ / last);
  }
  return success();
}

Status Dimension::set_choices(const std::vector<Json>& values) {
  if (values.empty()) return invalid("there are no values to choose from");
  for (const Json& value : values) {
    if (value.is_array() || value.is_object() || value.is_null()) {
      return invalid("a choice must be a string, number or Boolean; found " +
                     std::string(value.type_name()));
    }
    const bool added = cell_of_choice_.emplace(canonical_scalar(value), choices_.size()).second;
    if (!added) return invalid("the choice " + value.dump() + " comes twice");
    choices_.push_back(value);
  }
  cells_ = choices_.size();
  return success();
}

Dimension Dimension::with_points(std::uint64_t points) const {
  CHECK(points >= 1, "a grid needs at least one point along each parameter");
  Dimension out = *this;
  if (!continuous()) return out;
  out.cells_ = points;
  return out;
}

// The value at a cell or on the continuum.
double Dimension::number(double coordinate) const {
  if (continuous()) return coordinate;
  if (coordinate == 0) return min_;  // also the only cell, for which cells_ - 1 is 0 below
  if (step_ > 0) {
    double value = min_ + coordinate * step_;
    const double tidied = tidy(value);
    if (std::abs(tidied - value) <= kStepTolerance * step_) value = tidied;
    return std::clamp(value, min_, max_);
  }
  // The cells of with_points(): evenly spaced on the scale, from bound to bound.
  if (coordinate >= static_cast<double>(cells_ - 1)) return max_;
  const double share = coordinate / static_cast<double>(cells_ - 1);
  const double value =
      log_ ? std::exp(blend(log_low_, log_high_, share)) : blend(min_, max_, share);
  return std::clamp(tidy(value), min_, max_);
}

// The lower end of a cell's part of the unit interval.
double Dimension::edge(double cell) const {
  const double cells = static_cast<double>(cells_);
  if (cell <= 0) return 0;
  if (cell >= cells) return 1;
  if (!log_ || step_ == 0) return cell / cells;
  const double between = min_ + (cell - 0.5) * step_;
  return std::clamp((std::log(between) - log_low_) / (log_high_ - log_low_), 0.0, 1.0);
}

double Dimension::from_unit(double unit) const {
  unit = std::clamp(unit, 0.0, 1.0);
  if (continuous()) {
    const double value =
        log_ ? std::exp(blend(log_low_, log_high_, unit)) : blend(min_, max_, unit);
    return std::clamp(value, min_, max_);
  }
  const double last = static_cast<double>(cells_ - 1);
  // Cells of equal width: choices, steps on a linear scale, and the cells of with_points().
  if (!log_ || step_ == 0) return std::min(std::floor(unit * static_cast<double>(cells_)), last);
  const double value = std::exp(blend(log_low_, log_high_, unit));
  return std::clamp(std::round((value - min_) / step_), 0.0, last);
}

double Dimension::middle() const {
  const double middle = from_unit(0.5);
  return continuous() ? std::clamp(tidy(middle), min_, max_) : middle;
}

Dimension::Interval Dimension::to_unit(double coordinate) const {
  if (!continuous()) return {edge(coordinate), edge(coordinate + 1)};
  double unit = 0;
  if (log_) {
    unit = (std::log(coordinate) - log_low_) / (log_high_ - log_low_);
  } else {
    // Halves, so that the length of the widest range still fits in a double.
    unit = (0.5 * coordinate - 0.5 * min_) / (0.5 * max_ - 0.5 * min_);
  }
  unit = std::clamp(unit, 0.0, 1.0);
  return {unit, unit};
}

Json Dimension::value(double coordinate) const {
  if (categorical()) return choices_[static_cast<std::size_t>(coordinate)];
  const double value = number(coordinate);
  return integer_ ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

std::optional<double> Dimension::coordinate(const Json& value) const {
  if (categorical()) {
    const auto found = cell_of_choice_.find(canonical_scalar(value));
    if (found == cell_of_choice_.end()) return std::nullopt;
    return static_cast<double>(found->second);
  }
  if (!value.is_number()) return std::nullopt;
  const double wanted = value.as_double();
  if (!(wanted >= min_ && wanted <= max_)) return std::nullopt;
  if (continuous()) return wanted;
  double guess = 0;
  if (step_ > 0) {
    guess = (wanted - min_) / step_;
  } else {  // the cells of with_points(): evenly spaced on the scale; halves, see to_unit()
    const double share = log_ ? (std::log(wanted) - log_low_) / (log_high_ - log_low_)
                              : (0.5 * wanted - 0.5 * min_) / (0.5 * max_ - 0.5 * min_);
    guess = share * static_cast<double>(cells_ - 1);
  }
  const double cell = std::clamp(std::round(guess), 0.0, static_cast<double>(cells_ - 1));
  // In cells. The k-th value as written has a relative error, so its absolute error grows with k.
  // The rounding of `wanted` itself is many steps if the range lies far from 0.
  double tolerance = kStepTolerance * std::max(1.0, cell);
  if (step_ > 0) tolerance += kRounding * std::abs(wanted) / step_;
  const bool near = std::abs(guess - cell) <= tolerance;  // otherwise it lies between two cells
  return near ? std::optional<double>(cell) : std::nullopt;
}

}  // namespace fettle::search
