// Space: all points of a Study. A point gives each parameter a value, or none if its condition is
// not met.
//
// Invariant: a point that a Space returns has exactly its active parameters, each within its bounds
// and on its step. A finite space numbers its points 0, 1, 2 ... as a mixed-radix number (the last
// parameter changes fastest), each distinct active combination once, without ever listing them.
// Immutable after make(); safe to share between threads.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/result.h"
#include "search/space/dimension.h"

namespace fettle::search {

// One coordinate (dimension.h) per parameter; kInactive if the parameter does not exist.
using Point = std::vector<double>;

inline constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();
bool is_active(double coordinate);

class Space {
 public:
  // Sizes at or above this one count as equal: more points than any Study can try.
  static constexpr std::uint64_t kUnbounded = std::uint64_t{1} << 63;

  // Errors name the parameter: errors of Dimension::make, a name that is empty or comes twice, a
  // condition on a parameter that is not declared before, on a continuum, or on a value that the
  // parameter never has.
  static Result<Space> make(const std::vector<api::Parameter>& parameters);

  // The same space with every continuum replaced by `points` values.
  Space with_points(std::uint64_t points) const;

  std::size_t dimensions() const { return dimensions_.size(); }
  const Dimension& dimension(std::size_t index) const { return dimensions_[index]; }

  // The number of distinct points; kUnbounded on a continuum or with 2^63 points or more.
  std::uint64_t size() const { return size_; }
  bool finite() const { return size_ < kUnbounded; }

  // Point number `index`, below size(). Without a continuum this also works in an unbounded space,
  // for its first kUnbounded points.
  Point at(std::uint64_t index) const;

  // The point at a position in the unit cube (one number per parameter; unused for inactive
  // parameters).
  Point from_unit(const std::vector<double>& unit) const;
  // The middle of every scale (Dimension::middle).
  Point middle() const;
  // A point from the prior: one draw per parameter, active or not.
  Point draw(Random& random) const;

  // Active parameters by name, in the order of declaration.
  Json write(const Point& point) const;
  // The point that was written; nullopt if it is outside this space.
  std::optional<Point> read(const Json& parameters) const;

  // Equal points have equal keys; different points share a key with probability 2^-64.
  std::uint64_t key(const Point& point) const;

  // Whether parameter `index` exists, given the coordinates of the parameters declared before it.
  bool active(std::size_t index, const Point& point) const;

  // The parameters that exist under one condition (the first group: under none), in the order of
  // declaration; the parameter in the condition is in an earlier group.
  const std::vector<std::vector<std::size_t>>& groups() const { return groups_; }

 private:
  struct Parent {
    std::size_t index = 0;
    std::vector<double> cells;  // ascending
    bool operator==(const Parent&) const = default;
  };
  // A value that conditions name, and the number of points below it.
  struct Branch {
    double cell = 0;
    std::uint64_t size = 1;
  };

  Space() = default;
  Result<Parent> parent_of(const api::Parameter& parameter, std::size_t index) const;
  void finish();
  void count();
  void group();
  void open(std::size_t parameter, double cell, std::uint64_t rest,
            std::vector<std::uint64_t>& digits) const;

  std::vector<std::string> names_;
  std::vector<Dimension> dimensions_;
  std::vector<std::optional<Parent>> parents_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::vector<Branch>> branches_;  // by parameter, ascending by cell
  std::vector<std::uint64_t> sizes_;           // points of a parameter and its descendants
  std::vector<std::vector<std::size_t>> groups_;
  std::uint64_t size_ = 1;
};

}  // namespace fettle::search
