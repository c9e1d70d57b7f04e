#include "search/gp/forced_exploration.h"

#include <cstdint>
#include <vector>

namespace fettle::search::gp {
namespace {

// Returns the number of trials with each value of a parameter.
std::vector<std::int64_t> tally(const Dimension& dimension, std::size_t parameter,
                                const Targets& targets) {
  std::vector<std::int64_t> out(dimension.cells());
  const auto count = [&](std::int64_t trial) {
    const double cell = targets.point(trial)[parameter];
    if (is_active(cell)) ++out[static_cast<std::size_t>(cell)];
  };
  for (const std::int64_t trial : targets.ended()) count(trial);
  for (const std::int64_t trial : targets.pending()) count(trial);
  return out;
}

}  // namespace

bool is_small(const Dimension& dimension) {
  return dimension.cells() >= 2 && dimension.cells() <= kMostSlices;
}

bool has_slices(const Space& space) {
  for (std::size_t i = 0; i < space.dimensions(); ++i) {
    if (is_small(space.dimension(i)) || space.dimension(i).categorical()) return true;
  }
  return false;
}

std::optional<Slice> neglected_slice(const Space& space, const Targets& targets) {
  std::optional<Slice> out;
  double least = kLeastShare;
  for (std::size_t parameter = 0; parameter < space.dimensions(); ++parameter) {
    const Dimension& dimension = space.dimension(parameter);
    if (!is_small(dimension)) continue;
    const std::vector<std::int64_t> counts = tally(dimension, parameter, targets);
    std::int64_t all = 0;  // trials that have the parameter
    for (const std::int64_t count : counts) all += count;
    for (std::size_t cell = 0; cell < counts.size() && all > 0; ++cell) {
      // 1 is the fair share: all values of the parameter have the same number of trials.
      const double share = static_cast<double>(counts[cell]) * static_cast<double>(counts.size()) /
                           static_cast<double>(all);
      if (share >= least) continue;
      least = share;
      out = Slice{parameter, static_cast<double>(cell)};
    }
  }
  return out;
}

}  // namespace fettle::search::gp
