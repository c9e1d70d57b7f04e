// Parzen: a density over one group of parameters, a mixture of one kernel for each given point and
// one for the prior, as in Bergstra et al. 2011, multivariate (Falkner et al. 2018) with Optuna's
// constants: kernels are products over the parameters, on the unit interval normals truncated to it
// (summed over a cell where the values are discrete), on choices a smoothed indicator.
//
// Later points weigh more: the newest 25 fully, older ones ever less. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "search/space.h"

namespace fettle::search {

class Parzen {
 public:
  // `points`: all active in `parameters`, oldest first.
  Parzen(const Space& space, const std::vector<std::size_t>& parameters,
         const std::vector<const Point*>& points);

  // Sets the coordinates of the group's parameters to a draw.
  void draw(Random& random, Point& point) const;

  // Logarithm of the density at the group's coordinates of `point`, up to a factor that is the same
  // for all densities over the same group.
  double log_density(const Point& point) const;

 private:
  // One parameter of the group: where the kernels are along it. The last one is the prior.
  struct Axis {
    std::size_t parameter = 0;
    std::vector<double> centres;       // on the unit interval, or the choice
    std::vector<double> distinct;      // discrete: the different centres, ascending
    std::vector<std::uint32_t> slots;  // discrete: of each kernel, in `distinct`
  };
  void add_axis(std::size_t parameter, const std::vector<const Point*>& points);
  void normalise_continuous(const Axis& axis);
  double log_mass(const Axis& axis, double centre, double sigma, double coordinate) const;
  void add_discrete(const Axis& axis, double coordinate, std::vector<double>& logs) const;
  double choice_share(const Axis& axis, bool same) const;

  const Space& space_;
  std::size_t kernels_;
  double sigma_;                    // width of every kernel but the prior's
  std::vector<double> cumulative_;  // of the weights
  std::vector<double> base_;        // logarithm of weight and normalisation, by kernel
  std::vector<Axis> axes_;
};

}  // namespace fettle::search
