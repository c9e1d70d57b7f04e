// Parzen: a density over one group of parameters, a mixture of one kernel for each given point and
// one for the prior, as in Bergstra et al. 2011, multivariate with the constants of Optuna 5:
// kernels are products over the parameters, on the unit interval normals truncated to it (summed
// over a cell where the values are discrete) as wide as the gap to the farther neighbour, on
// choices a smoothed indicator.
//
// Later points weigh more: the newest 25 fully, older ones ever less. Immutable; thread-safe.
#pragma once

#include <compare>
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
  struct Kernel {
    double centre = 0;  // on the unit interval, or the choice
    double sigma = 0;   // 0 for a choice
    auto operator<=>(const Kernel&) const = default;
  };
  // One parameter of the group and the kernels along it. The prior's is not among them.
  struct Axis {
    std::size_t parameter = 0;
    std::vector<Kernel> kernels;
    std::vector<Kernel> distinct;      // discrete: the different ones, ascending
    std::vector<std::uint32_t> slots;  // discrete: of each kernel, in `distinct`
  };
  void add_axis(std::size_t parameter, const std::vector<const Point*>& points);
  void normalise_continuous(const Axis& axis);
  double log_mass(const Axis& axis, const Kernel& kernel, double coordinate) const;
  void add_continuous(const Axis& axis, double coordinate, std::vector<double>& logs) const;
  void add_discrete(const Axis& axis, double coordinate, std::vector<double>& logs) const;
  double choice_share(const Axis& axis, bool same) const;

  const Space& space_;
  std::size_t points_;
  std::vector<double> cumulative_;  // of the weights, the prior's last
  std::vector<double> base_;        // logarithm of weight and normalisation, the prior's last
  std::vector<Axis> axes_;
};

}  // namespace fettle::search
