// Landscape: a random smooth function over a unit cube. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/philox.h"

namespace fettle::search::families {

using Landscape = std::function<double(const std::vector<double>&)>;

// Each draws its shape from `random`. Losses over the cube are of order one.
Landscape bowl(Random& random, std::size_t dimensions);     // ill-conditioned, rotated
Landscape ripples(Random& random, std::size_t dimensions);  // a bowl with waves on it
Landscape valley(Random& random, std::size_t dimensions);   // narrow and bent
Landscape bumps(Random& random, std::size_t dimensions);    // pits of all widths and depths
Landscape draw(Random& random, std::size_t dimensions);     // of a Gaussian process, by features
Landscape any(Random& random, std::size_t dimensions);      // one of them

}  // namespace fettle::search::families
