// Candidates: points at which to look for the maximum of an acquisition function.
//
// A candidate has a position in the unit cube for every parameter, whether it exists or not, so
// that a changed choice gives its conditional parameters sensible positions. Functions of their
// arguments and of the Random passed in.
#pragma once

#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "search/gp/process/kernel.h"
#include "search/space/space.h"

namespace fettle::search::gp {

struct Candidate {
  std::vector<double> unit;
  Point point;
};

// Returns the candidate at a position; discrete values move to the middle of their interval.
Candidate candidate_at(const Space& space, std::vector<double> unit);
// Returns the candidate at a point; parameters that do not exist get positions from `elsewhere`.
Candidate candidate_of(const Space& space, const Point& point,
                       const std::vector<double>& elsewhere);

// Returns a neighbour with one or a few parameters changed: numbers by a step of random length
// (over two orders of magnitude), choices to any other. Reflected at the bounds.
Candidate perturb(const Space& space, const Candidate& from, Random& random);

// Returns all candidates that differ in one discrete parameter: numbers by one cell, choices by at
// most kMostChoices others.
inline constexpr std::uint64_t kMostChoices = 12;
std::vector<Candidate> neighbours(const Space& space, const Candidate& from, Random& random);

// Whether an optimiser may treat a parameter as a continuum: it is one, or has many cells.
bool is_smooth(const Dimension& dimension);

Inputs inputs_of(const Space& space, const std::vector<Candidate>& candidates);
// The points of some trials, as `known` holds them (targets.h, cost_ledger.h).
template <class Known>
Inputs inputs_of(const Space& space, const Known& known, const std::vector<std::int64_t>& trials) {
  Inputs out(static_cast<Index>(trials.size()), static_cast<Index>(space.dimensions()));
  for (std::size_t i = 0; i < trials.size(); ++i) {
    out.set(static_cast<Index>(i), space, known.point(trials[i]));
  }
  return out;
}

}  // namespace fettle::search::gp
