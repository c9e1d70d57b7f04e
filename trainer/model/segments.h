// Segments: the possible cuts of a network for recomputation (activation_plan.h), and the cuts that
// keep the least. A cut after a layer is possible if all later layers depend on that layer's output
// alone. The output of a segment's last layer is kept; the layers inside run again.
//
// A plain value; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

class Segments {
 public:
  // `elements`: of each layer's output in memory, by layer; 0 if it is never written.
  Segments(const NetworkPlan& network, const std::vector<std::int64_t>& elements);

  // Sizes that the inside of a segment can have, ascending: the limits for which cheapest_cuts()
  // can give different answers. If there are too many to try, a fixed number of them, evenly spaced
  // by rank and including the largest.
  std::vector<std::int64_t> sizes() const;

  // The last layers of the segments, ascending, such that no inside is larger than `limit` elements
  // and the sum of the kept outputs is least. Empty: no such segments exist. O(n^2) in the cuts.
  std::vector<std::int64_t> cheapest_cuts(std::int64_t limit) const;

 private:
  std::int64_t kept(std::size_t cut) const;
  std::int64_t inside(std::size_t from, std::size_t to) const;

  std::vector<std::int64_t> cuts_;    // layers after which a cut is possible, ascending
  std::vector<std::int64_t> before_;  // elements of all layers before each layer
};

}  // namespace fettle::trainer
