// Forced exploration: keeps any value of a small parameter from starving.
//
// A choice or integer of few values splits the space into slices. After a few unlucky trials a
// model may judge a slice as average, and never sample it again. As bandits do for arms (Garivier
// and Kaufmann 2016, arXiv 1602.04589), a slice with much less than its fair share of the trials is
// sampled, here at the point of the largest expected gain within it. Pure functions.
#pragma once

#include <cstddef>
#include <optional>

#include "search/gp/targets.h"
#include "search/space/space.h"

namespace fettle::search::gp {

// Parameters of more values are not split: a value has neighbours, or too many rivals.
inline constexpr std::uint64_t kMostSlices = 6;

// Whether a parameter has 2 to kMostSlices values.
bool is_small(const Dimension& dimension);

// Whether any parameter is small, or is a choice.
bool has_slices(const Space& space);

struct Slice {
  std::size_t parameter = 0;
  double cell = 0;
  bool contains(const Point& point) const { return point[parameter] == cell; }
};

// Returns the slice with the smallest share of the trials that have its parameter, if it is less
// than kLeastShare of its share by chance; pending trials count.
inline constexpr double kLeastShare = 0.3;
std::optional<Slice> neglected_slice(const Space& space, const Targets& targets);

}  // namespace fettle::search::gp
