// A tree's mean along two coordinates, over all others.
// Pure function; usable from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "explain/forest.h"

namespace fettle::explain {

// Places along a column, as the tree's own coordinates in [0, 1].
struct Axis {
  std::size_t column = 0;
  std::vector<double> places;
};

// One mean for each pair of places, those of `second` turning fastest. `leaves`: a partition of
// the cube.
std::vector<double> surface_of(const std::vector<Leaf>& leaves, const Axis& first,
                               const Axis& second);

}  // namespace fettle::explain
