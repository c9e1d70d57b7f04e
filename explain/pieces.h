// Pieces: a tree's mean along one coordinate, over all others: a step function.
// Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "explain/forest.h"

namespace fettle::explain {

struct Piece {
  double low = 0;
  double high = 0;
  double mean = 0;
};

// Ascending, without gaps, from 0 to 1. `leaves`: a partition of the cube.
std::vector<Piece> pieces_along(const std::vector<Leaf>& leaves, std::size_t column);

// The value at a coordinate (the tree's own) in [0, 1].
double value_at(const std::vector<Piece>& pieces, double coordinate);

}  // namespace fettle::explain
