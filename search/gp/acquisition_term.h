// AcquisitionTerm: a summand of the acquisition function besides the log gain, in the same unit:
// low cost (expected_cost.h), nearby good trials (tpe_prior.h).
#pragma once

#include <Eigen/Core>

#include "search/gp/process/kernel.h"
#include "search/space/space.h"

namespace fettle::search::gp {

class AcquisitionTerm {
 public:
  virtual ~AcquisitionTerm() = default;

  // The term at a point; at a row of `points`, with the derivatives with respect to its positions
  // on the unit interval.
  virtual double at(const Point& point) const = 0;
  virtual double at(const Inputs& points, Index row, Eigen::VectorXd& slope) const = 0;
  // The term at a row of the candidates that were set.
  virtual double at_candidate(Index row) const = 0;
};

}  // namespace fettle::search::gp
