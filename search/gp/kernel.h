// Kernel: how alike two points of a Space are, for Gaussian processes over them.
//
// Parameters that always exist share one Matern-5/2 kernel with a length scale each (ARD): numbers
// at the place that their value has on the unit interval (an integer at the middle of its cell, so
// that the model is flat between integers), choices by whether they are the same (Hamming).
// A conditional parameter multiplies that by a factor of its own: 1 where neither point has it,
// Matern-5/2 where both have it, and a constant below 1 where one has it. The constant is learnt
// for each condition, up to the largest one for which the kernel stays positive definite
// (kernel.cpp). Numbers may be bent before (input warping by the Kumaraswamy distribution, Snoek et
// al. 2014): the model then finds out where on its scale a parameter matters. On top comes the
// variance of an unknown mean (kMeanVariance), so that the mean needs no estimate. All in units of
// the output scale. Immutable; safe to share between threads.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "search/space/space.h"

namespace fettle::search::gp {

using Eigen::Index;

// Prior variance of the constant mean.
inline constexpr double kMeanVariance = 1.0;

// How one parameter enters the kernel.
struct Axis {
  bool categorical = false;
  double cells = 0;   // number of values; 0 on a continuum
  Index branch = -1;  // which condition it hangs on; -1 = it always exists
};
struct Axes {
  std::vector<Axis> list;      // by parameter
  Index branches = 0;          // conditions
  std::vector<Index> numbers;  // the parameters that are no choices
};
Axes axes_of(const Space& space);

// Points as the kernel sees them: one row a point, one column a parameter.
struct Inputs {
  Eigen::MatrixXd at;      // the place on the unit interval, or the number of the choice
  Eigen::MatrixXd active;  // 1, or 0 where the parameter does not exist

  Inputs() = default;
  Inputs(Index rows, Index columns) : at(rows, columns), active(rows, columns) {}
  // Writes `point` into a row.
  void set(Index row, const Space& space, const Point& point);
  void copy(Index row, const Inputs& other, Index other_row);
};

// What is learnt, in the order of the vector that optimisers see: logarithms of the length scales,
// logarithm of the noise variance, then for each condition the logit of its constant (as a share of
// the largest one allowed), then, where numbers are bent, for each the logarithms of the two
// exponents a and b of 1 - (1 - x^a)^b.
struct Hyperparameters {
  Eigen::VectorXd log_lengths;
  double log_noise = -4;
  Eigen::VectorXd ties;
  Eigen::VectorXd bends;  // empty: nothing is bent

  Eigen::VectorXd pack() const;
  static Hyperparameters unpack(const Axes& axes, const Eigen::VectorXd& packed);
};

class Kernel {
 public:
  Kernel(const Axes& axes, const Hyperparameters& hyperparameters);

  // Bends `count` rows of the inputs from `first` on, in place. All that is below but bend_slope()
  // takes inputs that were bent.
  void bend(Inputs& inputs, Index first, Index count) const;
  // d bent / d straight at a place of a number.
  double bend_slope(Index axis, double straight) const;

  // The covariance of one point with some others and what its derivatives need.
  struct Row {
    Eigen::ArrayXd value;  // without the mean's variance
    Eigen::ArrayXd slope;  // times 5 (distance / length)^2 = d value / d log(length), where shared
  };
  // Of row `x` of `points` with the `count` rows of `inputs` from `first` on.
  void row(const Inputs& inputs, Index first, Index count, const Inputs& points, Index x,
           Row& out) const;

  // The prior variance of any point, noise excluded.
  static constexpr double variance() { return 1.0 + kMeanVariance; }
  double noise() const { return noise_; }

  // Sums over rows j of weights(j, w) * d k(x, inputs_j) / d x_i (bent), in row i, for each column
  // w of weights. Zero for choices and for parameters that x does not have.
  Eigen::MatrixXd slopes(const Inputs& inputs, const Inputs& points, Index x, const Row& row,
                         const Eigen::MatrixXd& weights) const;

  // Sum over pairs of weights(j, l) * d k(j, l) / d packed hyperparameter (noise excluded: 0).
  // `weights` is symmetric, of which the lower triangle is read; `values` and `slopes` are those of
  // row() for all pairs, lower triangles; `straight` are the inputs before they were `bent`. Only
  // the first weights.rows() rows count.
  Eigen::VectorXd contract(const Inputs& straight, const Inputs& bent,
                           const Eigen::MatrixXd& values, const Eigen::MatrixXd& slopes,
                           const Eigen::MatrixXd& weights) const;

 private:
  struct Factor {
    double weight = 0;      // 5 / length^2, so that s^2 = weight * distance^2
    double tie = 1;         // the factor where one of two points has the parameter
    double tie_slope = 0;   // d log(tie) / d log(length)
    double tie_change = 0;  // d log(tie) / d logit
  };
  void multiply_conditional(Index axis, const Inputs& inputs, Index first, Index count,
                            const Inputs& points, Index x, Eigen::ArrayXd& product,
                            Eigen::ArrayXd& exponent) const;
  double contract_shared_choice(const Inputs& inputs, Index axis,
                                const Eigen::MatrixXd& weighted) const;
  void contract_conditional(const Inputs& inputs, Index axis, const Eigen::MatrixXd& weighted,
                            Eigen::VectorXd& gradient, Eigen::MatrixXd& by_place) const;
  void contract_bends(const Inputs& straight, const Eigen::MatrixXd& by_place,
                      Eigen::VectorXd& gradient) const;

  Axes axes_;
  double noise_ = 0;
  Eigen::VectorXd bends_;  // exponents a and b of each number, or empty
  std::vector<Factor> factors_;
  std::vector<Index> shared_;
  std::vector<Index> conditional_;
};

}  // namespace fettle::search::gp
