// Importance: how much of a forest's variance each coordinate explains (functional analysis of
// variance; Hutter, Hoos, Leyton-Brown 2014, "An efficient approach for assessing hyperparameter
// importance"). Exact for each tree, averaged over trees. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "search/explain/forest.h"

namespace fettle::explain {

// Shares of the variance over the cube.
struct ColumnShare {
  double main = 0;       // by this coordinate alone
  double total = 0;      // by it together with any others: the loss without it
  double deviation = 0;  // of `total` between trees
};

struct PairShare {
  std::size_t first = 0;
  std::size_t second = 0;
  double share = 0;  // by the two together, beyond the share of each alone
};

struct Shares {
  std::vector<ColumnShare> columns;
  std::vector<PairShare> pairs;  // of the most important columns, largest first
};

// Returns shares over the part of the cube at `given`; absent coordinates are free. All shares are
// 0 if the forest is flat.
Shares shares_of(const Forest& forest, const Place& given);

}  // namespace fettle::explain
