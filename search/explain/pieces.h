// Pieces and surfaces: a tree's mean over all coordinates except one (a step function) or except
// two. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "search/explain/forest.h"

namespace fettle::explain {

struct Piece {
  double low = 0;
  double high = 0;
  double mean = 0;
};

// Returns pieces ascending, without gaps, from 0 to 1. `leaves`: a partition of the cube.
std::vector<Piece> pieces_along(const std::vector<Leaf>& leaves, std::size_t column);

// The value at a coordinate (the tree's own) in [0, 1].
double value_at(const std::vector<Piece>& pieces, double coordinate);

// Places along a column, as the tree's own coordinates in [0, 1].
struct Axis {
  std::size_t column = 0;
  std::vector<double> places;
};

// Returns one mean for each pair of places; the places of `second` vary fastest. `leaves`: a
// partition of the cube.
std::vector<double> surface_of(const std::vector<Leaf>& leaves, const Axis& first,
                               const Axis& second);

}  // namespace fettle::explain
