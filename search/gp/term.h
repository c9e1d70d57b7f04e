// Term: what speaks for a point beside what a trial there may gain, in the unit of that gain's
// logarithm: that it costs little (price.h), that good trials lie near it (opinion.h).
#pragma once

#include <Eigen/Core>

#include "search/gp/kernel.h"
#include "search/space/space.h"

namespace fettle::search::gp {

class Term {
 public:
  virtual ~Term() = default;

  // Of a point; of a row of `points`, with the derivatives by its places on the unit interval.
  virtual double at(const Point& point) const = 0;
  virtual double at(const Inputs& points, Index row, Eigen::VectorXd& slope) const = 0;
  // Of a row of the candidates that it was told of.
  virtual double at_candidate(Index row) const = 0;
};

}  // namespace fettle::search::gp
