// Parzen: a density over one group of parameters: a mixture of one kernel for each given trial and
// one for the prior, as in Bergstra et al. 2011. Multivariate: kernels are products over the
// parameters. Numbers have normals truncated to the unit interval (integrated over a cell for
// discrete values), whose width follows the gap to the farther neighbour; choices have a smoothed
// indicator.
//
// Immutable; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "search/space/columns.h"
#include "search/space/space.h"

namespace fettle::search {

// The widths of kernels. The defaults are Fettle's: half the gap locates the good trials while
// there are few, and a least width that does not shrink keeps the density of many trials smooth (as
// Watanabe 2023, arXiv 2304.11127, finds). Optuna uses {1, 0.01, true}.
struct KernelWidths {
  double share_of_gap = 0.5;
  double narrowest = Columns::kNarrowest;
  bool closing_in = false;  // the width is also at least 1 / (trials + 2)
};

class Parzen {
 public:
  // `trials`: indices into `columns`, ascending, all active in `parameters`. `weights`: of each
  // trial, where the prior has 1. Without weights they follow age: 1 for the newest 25, less for
  // older trials.
  Parzen(const Space& space, const std::vector<std::size_t>& parameters, const Columns& columns,
         const std::vector<std::int64_t>& trials, std::vector<double> weights = {},
         KernelWidths widths = {});

  // The sum of all weights, including the prior's.
  double weight() const { return cumulative_.back(); }

  // Sets the coordinates of the group's parameters to a draw.
  void draw(Random& random, Point& point) const;

  // Logarithm of the density at the group's coordinates of each point, up to a factor that is the
  // same for all densities over the same group.
  std::vector<double> log_densities(const std::vector<Point>& points) const;
  double log_density(const Point& point) const { return log_densities({point}).front(); }

 private:
  // Points are evaluated in blocks of this size: kernels are read once per block.
  static constexpr std::size_t kLanes = 8;
  using Lanes = std::array<double, kLanes>;

  // A truncated normal on the unit interval.
  struct Kernel {
    double centre = 0;
    double sigma = 0;
    bool operator==(const Kernel&) const = default;
  };
  // One parameter of the group and the kernels along it; the prior's kernel is the last.
  struct Axis {
    std::size_t parameter = 0;
    std::vector<double> choices;       // categorical: by trial
    std::vector<Kernel> kernels;       // otherwise
    std::vector<double> scales;        // continuous: 1 / (sigma sqrt 2), by kernel
    std::vector<Kernel> distinct;      // discrete: distinct kernels
    std::vector<double> log_scales;    // discrete: by index in `distinct`
    std::vector<std::uint32_t> slots;  // discrete: index in `distinct`, by kernel
  };
  // The masses of the distinct kernels of a discrete axis in a cell.
  struct CellMasses {
    double cell = 0;
    std::vector<double> log_masses;  // by index in Axis::distinct
  };

  void add_axis(std::size_t parameter, const Columns& columns,
                const std::vector<std::int64_t>& trials);
  void add_continuous(Axis& axis, const Columns& columns, const std::vector<std::int64_t>& trials);
  static void add_discrete(Axis& axis, const std::vector<std::uint32_t>& ascending);
  // The logarithms of the masses in a cell, by index in Axis::distinct.
  std::vector<double> log_masses_in(const Axis& axis, double cell) const;
  // These add to logs[k], in each lane, the logarithm of kernel k's density (discrete: its mass) at
  // that lane's coordinate along the axis. `memo`: cached cells of this axis.
  void add_logs(const Axis& axis, const Lanes& coordinates, std::vector<CellMasses>& memo,
                std::vector<Lanes>& logs) const;
  void add_continuous_logs(const Axis& axis, const Lanes& coordinates,
                           std::vector<Lanes>& logs) const;
  void add_choice_logs(const Axis& axis, Lanes coordinates, std::vector<Lanes>& logs) const;
  void add_discrete_logs(const Axis& axis, const Lanes& coordinates, std::vector<CellMasses>& memo,
                         std::vector<Lanes>& logs) const;
  static Lanes log_sums(const std::vector<Lanes>& logs);
  double choice_share(const Axis& axis, bool same) const;

  const Space& space_;
  KernelWidths widths_;
  std::size_t trials_;
  std::vector<double> cumulative_;  // sums of the weights, the prior's last
  std::vector<double> base_;        // logarithms of weight and normalisation, the prior's last
  std::vector<Axis> axes_;
};

}  // namespace fettle::search
