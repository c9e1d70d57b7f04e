// Dimension: the values of one parameter and their positions on the unit interval.
//
// A value has a coordinate: the number itself on a continuum (Double without a step), otherwise the
// index of a cell (the k-th step, choice or Boolean), an exact integer in a double. The unit
// interval [0, 1] carries the prior: equal lengths are equally probable, in the logarithm on a log
// scale, and each cell owns an interval of it. Invariant: every value returned lies within [min,
// max] and on the step. Immutable after make(); safe to share between threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::search {

class Dimension {
 public:
  // Errors: bounds that are not finite or in the wrong order, a log scale whose lower bound is not
  // positive, a step that is not positive or smaller than a double resolves, no choices, or a
  // choice twice.
  static Result<Dimension> make(const api::Parameter& parameter);

  // The same parameter with a continuum replaced by `points` values that include both ends, evenly
  // spaced on its scale. Other dimensions stay unchanged.
  Dimension with_points(std::uint64_t points) const;

  // The number of values; 0 on a continuum.
  std::uint64_t cells() const { return cells_; }
  bool continuous() const { return cells_ == 0; }
  // Whether the values are choices without an order: neighbours on the unit interval are unrelated.
  bool categorical() const { return !choices_.empty(); }

  // The coordinate at `unit` in [0, 1].
  double from_unit(double unit) const;
  // from_unit(0.5), on a continuum as the shortest decimal near it: 0.001 between 1e-6 and 1.
  double middle() const;

  // The part of the unit interval that a coordinate owns; one point (low == high) on a continuum.
  struct Interval {
    double low = 0;
    double high = 0;
    double centre() const { return 0.5 * (low + high); }
  };
  Interval to_unit(double coordinate) const;

  Json value(double coordinate) const;

  // The coordinate of a value as it was written; nullopt if it is no value of this parameter.
  std::optional<double> coordinate(const Json& value) const;

 private:
  Dimension() = default;
  Status set_range(const api::Parameter& parameter);
  Status set_lattice(const api::Parameter& parameter);
  Status set_choices(const std::vector<Json>& values);
  double number(double coordinate) const;
  double edge(double cell) const;

  std::uint64_t cells_ = 0;
  double min_ = 0;
  double max_ = 0;
  double step_ = 0;  // distance of cells; 0 = continuum, choices, or cells of with_points()
  bool log_ = false;
  bool integer_ = false;
  double log_low_ = 0;  // of the outer edges, if log_
  double log_high_ = 0;
  std::vector<Json> choices_;
  std::map<std::string, std::uint64_t> cell_of_choice_;
};

// The spelling of a scalar in which 1 and 1.0 are one number: equal values have equal spellings.
std::string canonical_scalar(const Json& value);

}  // namespace fettle::search
