// InnerSearch: finds the point of a Space at which an acquisition function is largest.
//
// Starts from the best of many candidates (a Pool) that are not too similar. Alternates L-BFGS over
// the parameters that are a continuum or nearly one with exact moves over the others, until neither
// gains. Functions of their arguments.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/philox.h"
#include "search/gp/acquisition_term.h"
#include "search/gp/candidates.h"
#include "search/gp/improvement.h"
#include "search/gp/process/posterior.h"
#include "search/space/space.h"

namespace fettle::search::gp {

struct InnerSearch {
  const Space& space;
  const std::vector<Posterior>& posteriors;  // Model::posteriors(): targets, then infeasibility
  const Improvement& improvement;
  const std::vector<double>& low;              // the box, on the unit interval, in which smooth
  const std::vector<double>& high;             // parameters may move
  std::function<bool(const Point&)> is_taken;  // points that must not be returned
  std::vector<const AcquisitionTerm*> terms;   // added to the gain

  // The logarithm of the expected improvement at a candidate, without and with the terms.
  double gain(const Candidate& candidate) const;
  double value(const Candidate& candidate) const;

  // Returns the best point found; nullopt if all are taken. `pools` (one per posterior) and
  // `candidates` hold the same points, and so do the terms' candidates.
  std::optional<Candidate> maximise(const std::vector<Pool>& pools,
                                    const std::vector<Candidate>& candidates, int starts,
                                    Random& random) const;

  // Returns the local optimum reached from `start`.
  Candidate polish(const Candidate& start, Random& random) const;

 private:
  std::vector<double> values_in(const std::vector<Pool>& pools) const;
  Candidate climb(const Candidate& start) const;
  bool step(Candidate& candidate, double& value, Random& random) const;
};

}  // namespace fettle::search::gp
