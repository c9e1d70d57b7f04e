#include "search/gp/candidates.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fettle::search::gp {
namespace {

constexpr double kMeanChanges = 2;        // parameters that a perturbation changes on average
constexpr double kLargestStep = 0.5;      // of the unit interval
constexpr double kStepRange = 100;        // ratio of the largest to the smallest step
constexpr std::uint64_t kManyCells = 24;  // rounding to this many cells or more hardly matters

double reflect(double unit) {
  unit = std::abs(unit);
  return unit > 1 ? std::max(0.0, 2 - unit) : unit;
}

double middle(const Dimension& dimension, double coordinate) {
  return dimension.to_unit(coordinate).centre();
}

// Returns a position in another cell if there is one: the step alone may not reach it. The step is
// normal with a log-uniform deviation, from kLargestStep down to kLargestStep / kStepRange.
double change(const Dimension& dimension, double unit, Random& random) {
  const double step = kLargestStep * std::pow(kStepRange, -random.uniform()) * random.normal();
  if (dimension.continuous()) return reflect(unit + step);
  const auto cells = static_cast<double>(dimension.cells());
  if (cells == 1) return unit;
  const double here = dimension.from_unit(unit);
  double there = here;
  if (dimension.categorical()) {
    there = static_cast<double>(random.below(dimension.cells() - 1));
    if (there >= here) there += 1;
  } else {
    there = dimension.from_unit(reflect(unit + step));
    if (there == here) there += step > 0 ? 1 : -1;
    if (there < 0) there = 1;  // at either end the only neighbour
    if (there >= cells) there = cells - 2;
  }
  return middle(dimension, there);
}

}  // namespace

bool is_smooth(const Dimension& dimension) {
  if (dimension.categorical()) return false;
  return dimension.continuous() || dimension.cells() >= kManyCells;
}

Candidate candidate_at(const Space& space, std::vector<double> unit) {
  Candidate out;
  out.point = space.from_unit(unit);
  for (std::size_t i = 0; i < unit.size(); ++i) {
    const Dimension& dimension = space.dimension(i);
    if (is_active(out.point[i]) && !dimension.continuous())
      unit[i] = middle(dimension, out.point[i]);
  }
  out.unit = std::move(unit);
  return out;
}

Candidate candidate_of(const Space& space, const Point& point,
                       const std::vector<double>& elsewhere) {
  Candidate out{elsewhere, point};
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (is_active(point[i])) out.unit[i] = middle(space.dimension(i), point[i]);
  }
  return out;
}

Candidate perturb(const Space& space, const Candidate& from, Random& random) {
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < from.point.size(); ++i) {
    if (is_active(from.point[i]) && space.dimension(i).cells() != 1) active.push_back(i);
  }
  if (active.empty()) return from;
  std::vector<double> unit = from.unit;
  const double share = kMeanChanges / static_cast<double>(active.size());
  const std::size_t always = active[random.below(active.size())];
  for (const std::size_t i : active) {
    if (i != always && random.uniform() >= share) continue;
    unit[i] = change(space.dimension(i), unit[i], random);
  }
  return candidate_at(space, std::move(unit));
}

std::vector<Candidate> neighbours(const Space& space, const Candidate& from, Random& random) {
  std::vector<Candidate> out;
  const auto add = [&](std::size_t i, double cell) {
    std::vector<double> unit = from.unit;
    unit[i] = middle(space.dimension(i), cell);
    out.push_back(candidate_at(space, std::move(unit)));
  };
  for (std::size_t i = 0; i < from.point.size(); ++i) {
    const Dimension& dimension = space.dimension(i);
    if (!is_active(from.point[i]) || dimension.continuous()) continue;
    const double here = from.point[i];
    const auto cells = static_cast<double>(dimension.cells());
    if (!dimension.categorical()) {
      if (here > 0) add(i, here - 1);
      if (here + 1 < cells) add(i, here + 1);
    } else if (dimension.cells() <= kMostChoices + 1) {
      for (std::uint64_t k = 0; k < dimension.cells(); ++k) {
        const auto cell = static_cast<double>(k);
        if (cell != here) add(i, cell);
      }
    } else {
      // May draw `here` or a choice twice, which costs a candidate and gains nothing.
      for (std::uint64_t k = 0; k < kMostChoices; ++k) {
        add(i, static_cast<double>(random.below(dimension.cells())));
      }
    }
  }
  return out;
}

Inputs inputs_of(const Space& space, const std::vector<Candidate>& candidates) {
  Inputs out(static_cast<Index>(candidates.size()), static_cast<Index>(space.dimensions()));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    out.set(static_cast<Index>(i), space, candidates[i].point);
  }
  return out;
}

}  // namespace fettle::search::gp
