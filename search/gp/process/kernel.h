// Kernel: the similarity of two points of a Space, for Gaussian processes over them.
//
// Parameters that always exist share one Matern-5/2 kernel with a length scale each (ARD): numbers
// enter with the position of their value on the unit interval (an integer with the middle of its
// cell, so that the model is flat between integers), choices by equality (Hamming). A conditional
// parameter multiplies the kernel by its own factor: 1 if neither point has it, Matern-5/2 if both
// have it, and a constant below 1 if one has it. The constant is learnt for each condition, up to
// the largest that keeps the kernel positive definite (kernel.cpp). Numbers may be warped first
// (input warping by the Kumaraswamy distribution, Snoek et al. 2014): the model then learns in
// which part of its scale a parameter matters. The variance of an unknown mean (kMeanVariance) is
// added, so that the mean needs no estimate. All in units of the output scale. Immutable; safe to
// share between threads.
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
  Index branch = -1;  // index of its condition; -1 = it always exists
};
struct Axes {
  std::vector<Axis> list;      // by parameter
  Index branches = 0;          // number of conditions
  std::vector<Index> numbers;  // the parameters that are not choices
};
Axes axes_of(const Space& space);

// Points in the kernel's form: one row per point, one column per parameter.
struct Inputs {
  Eigen::MatrixXd at;      // position on the unit interval, or index of the choice
  Eigen::MatrixXd active;  // 1, or 0 if the parameter does not exist

  Inputs() = default;
  Inputs(Index rows, Index columns) : at(rows, columns), active(rows, columns) {}
  // Writes `point` into a row.
  void set(Index row, const Space& space, const Point& point);
  void copy(Index row, const Inputs& other, Index other_row);
};

// The learnt values, in the order of the vector that optimisers see: logarithms of the length
// scales, logarithm of the noise variance, for each condition the logit of its constant (as a share
// of the largest one allowed), and, if numbers are warped, for each number the logarithms of the
// two exponents a and b of 1 - (1 - x^a)^b.
struct Hyperparameters {
  Eigen::VectorXd log_lengths;
  double log_noise = -4;
  Eigen::VectorXd ties;
  Eigen::VectorXd warps;  // empty: nothing is warped

  Eigen::VectorXd pack() const;
  static Hyperparameters unpack(const Axes& axes, const Eigen::VectorXd& packed);
};

class Kernel {
 public:
  Kernel(const Axes& axes, const Hyperparameters& hyperparameters);

  // Bends `count` rows of the inputs, beginning at `first`, in place. All functions below except
  // warp_slope() take warped inputs.
  void warp(Inputs& inputs, Index first, Index count) const;
  // d warped / d unwarped of a number at this position.
  double warp_slope(Index axis, double unwarped) const;

  // The covariance of one point with several others, and intermediate values for its derivatives.
  struct Row {
    Eigen::ArrayXd value;  // without the mean's variance
    Eigen::ArrayXd slope;  // times 5 (distance / length)^2 = d value / d log(length), if shared
  };
  // Computes row `x` of `points` against the `count` rows of `inputs` that begin at `first`.
  void row(const Inputs& inputs, Index first, Index count, const Inputs& points, Index x,
           Row& out) const;

  // The prior variance of any point, noise excluded.
  static constexpr double variance() { return 1.0 + kMeanVariance; }
  double noise() const { return noise_; }

  // Returns at (i, w) the sum over rows j of weights(j, w) * d k(x, inputs_j) / d x_i (warped).
  // Zero for choices and for parameters that x does not have.
  Eigen::MatrixXd slopes(const Inputs& inputs, const Inputs& points, Index x, const Row& row,
                         const Eigen::MatrixXd& weights) const;

  // Returns the sum over pairs of weights(j, l) * d k(j, l) / d packed hyperparameter (noise
  // excluded: 0). `weights` is symmetric; only its lower triangle is read. `values` and `slopes`
  // come from row() for all pairs, lower triangles; `unwarped` are the inputs before warping,
  // `warped` after it. Only the first weights.rows() rows count.
  Eigen::VectorXd contract(const Inputs& unwarped, const Inputs& warped,
                           const Eigen::MatrixXd& values, const Eigen::MatrixXd& slopes,
                           const Eigen::MatrixXd& weights) const;

 private:
  struct Factor {
    double weight = 0;      // 5 / length^2, so that s^2 = weight * distance^2
    double tie = 1;         // the factor if one of the two points has the parameter
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
  void contract_warps(const Inputs& unwarped, const Eigen::MatrixXd& by_place,
                      Eigen::VectorXd& gradient) const;

  Axes axes_;
  double noise_ = 0;
  Eigen::VectorXd warps_;  // exponents a and b of each number, or empty
  std::vector<Factor> factors_;
  std::vector<Index> shared_;
  std::vector<Index> conditional_;
};

}  // namespace fettle::search::gp
