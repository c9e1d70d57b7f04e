// Forced exploration: keeps any value of a small parameter from starving.
//
// A choice or integer of few values splits the space into slices. After a few trials in bad company
// a model may hold a slice for average, and never look there again. As bandits do for arms
// (Garivier and Kaufmann 2016, arXiv 1602.04589), a slice that has much less than its fair share of
// the trials is sampled; here at the point where the model expects most within it. Pure functions.
#pragma once

#include <cstddef>
#include <optional>

#include "search/gp/outcomes.h"
#include "search/space/space.h"

namespace fettle::search::gp {

// Parameters of more values are not split: a value of theirs has neighbours, or too many rivals.
inline constexpr std::uint64_t kMostSlices = 6;

// Whether a parameter has 2 to kMostSlices values.
bool is_small(const Dimension& dimension);

// Whether any is, or is a choice.
bool has_slices(const Space& space);

struct Slice {
  std::size_t parameter = 0;
  double cell = 0;
  bool contains(const Point& point) const { return point[parameter] == cell; }
};

// The slice that has the smallest share of the trials with its parameter, if that is less than
// kLeastShare of what it would have by chance; pending trials count.
inline constexpr double kLeastShare = 0.3;
std::optional<Slice> neglected_slice(const Space& space, const Outcomes& outcomes);

}  // namespace fettle::search::gp
