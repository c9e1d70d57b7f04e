// Perturb: a point near another one, as population based training explores (Jaderberg et al. 2017,
// appendix A.1). Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/study/study.h"
#include "base/philox.h"
#include "search/space/space.h"

namespace fettle::search {

// Returns `point` with each of its values drawn again from the prior with probability `resample`,
// otherwise moved: on a logarithmic scale by a factor of 0.8 or 1.2; on a linear one by a fifth of
// the value, but at least a twentieth and at most a fifth of the range; on a lattice by at least
// one step; among choices that are numbers in order, to a neighbour. Other choices stay. Parameters
// that become active thereby are drawn from the prior.
Point perturb(const Space& space, const std::vector<api::Parameter>& parameters, const Point& point,
              double resample, Random& random);

}  // namespace fettle::search
