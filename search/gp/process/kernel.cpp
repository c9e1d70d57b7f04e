#include "search/gp/process/kernel.h"

#include <algorithm>
#include <cmath>

namespace fettle::search::gp {
namespace {

using Eigen::ArrayXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Matern-5/2 as a function of s = sqrt(5) r.
double matern(double s) { return (1 + s + s * s / 3) * std::exp(-s); }

// The Kumaraswamy distribution function, kept away from the ends, where its slope may be infinite.
constexpr double kLeastPlace = 1e-6;
double within(double place) { return std::clamp(place, kLeastPlace, 1 - kLeastPlace); }
double warped(double x, double a, double b) { return 1 - std::pow(1 - std::pow(x, a), b); }

// The largest constant c for which the kernel with k(none, none) = 1, k(none, x) = c and k(x, x') =
// Matern-5/2 is positive definite for any number of points x: c^2 <= 1 / |1|^2, where |1| is the
// norm of the constant function in the kernel's Hilbert space. On an interval of length T that is
// 9/8 + 3 lambda T / 16 with lambda = sqrt(5) / length (from the kernel's stochastic differential
// equation, Hartikainen and Saerkkae 2010); on m choices m / (1 + (m - 1) q), with q the kernel
// between different choices. Returns log c and its derivative by log length.
struct Limit {
  double log_tie = 0;
  double slope = 0;
};
Limit tie_limit(const Axis& axis, double length) {
  const double lambda = std::sqrt(5.0) / length;
  if (!axis.categorical) {
    const double norm = 9.0 / 8.0 + 3.0 * lambda / 16.0;
    return {-0.5 * std::log(norm), 0.5 * (3.0 * lambda / 16.0) / norm};
  }
  const double q = matern(lambda);
  const double q_slope = lambda * lambda / 3 * (1 + lambda) * std::exp(-lambda);
  const double others = axis.cells - 1;
  return {0.5 * std::log((1 + others * q) / axis.cells), 0.5 * others * q_slope / (1 + others * q)};
}

}  // namespace

Axes axes_of(const Space& space) {
  Axes out;
  out.list.resize(space.dimensions());
  for (std::size_t i = 0; i < space.dimensions(); ++i) {
    out.list[i].categorical = space.dimension(i).categorical();
    out.list[i].cells = static_cast<double>(space.dimension(i).cells());
  }
  for (std::size_t i = 0; i < out.list.size(); ++i) {
    if (!out.list[i].categorical) out.numbers.push_back(static_cast<Index>(i));
  }
  const Point nothing(space.dimensions(), std::nan(""));  // no parameter has a value
  for (const std::vector<std::size_t>& group : space.groups()) {
    if (space.active(group.front(), nothing)) continue;  // the group without a condition
    for (const std::size_t i : group) out.list[i].branch = out.branches;
    ++out.branches;
  }
  return out;
}

void Inputs::set(Index row, const Space& space, const Point& point) {
  for (std::size_t i = 0; i < point.size(); ++i) {
    const auto column = static_cast<Index>(i);
    const bool exists = is_active(point[i]);
    active(row, column) = exists ? 1.0 : 0.0;
    at(row, column) = 0.5;  // any number: it counts only where `active` is 1
    if (!exists) continue;
    const Dimension& dimension = space.dimension(i);
    at(row, column) = dimension.categorical() ? point[i] : dimension.to_unit(point[i]).centre();
  }
}

void Inputs::copy(Index row, const Inputs& other, Index other_row) {
  at.row(row) = other.at.row(other_row);
  active.row(row) = other.active.row(other_row);
}

VectorXd Hyperparameters::pack() const {
  VectorXd out(log_lengths.size() + 1 + ties.size() + warps.size());
  out << log_lengths, log_noise, ties, warps;
  return out;
}

Hyperparameters Hyperparameters::unpack(const Axes& axes, const VectorXd& packed) {
  const auto lengths = static_cast<Index>(axes.list.size());
  Hyperparameters out;
  out.log_lengths = packed.head(lengths);
  out.log_noise = packed[lengths];
  out.ties = packed.segment(lengths + 1, axes.branches);
  out.warps = packed.tail(packed.size() - lengths - 1 - axes.branches);
  return out;
}

Kernel::Kernel(const Axes& axes, const Hyperparameters& hyperparameters)
    : axes_(axes),
      noise_(std::exp(hyperparameters.log_noise)),
      warps_(hyperparameters.warps.array().exp()),
      factors_(axes.list.size()) {
  for (std::size_t i = 0; i < axes.list.size(); ++i) {
    const auto index = static_cast<Index>(i);
    const double length = std::exp(hyperparameters.log_lengths[index]);
    Factor& factor = factors_[i];
    factor.weight = 5.0 / (length * length);
    const Index branch = axes.list[i].branch;
    (branch < 0 ? shared_ : conditional_).push_back(index);
    if (branch < 0) continue;
    const Limit limit = tie_limit(axes.list[i], length);
    const double share = sigmoid(hyperparameters.ties[branch]);
    factor.tie = share * std::exp(limit.log_tie);
    factor.tie_slope = limit.slope;
    factor.tie_change = 1 - share;  // d log(sigmoid) / d logit
  }
}

void Kernel::warp(Inputs& inputs, Index first, Index count) const {
  if (warps_.size() == 0) return;
  for (std::size_t i = 0; i < axes_.numbers.size(); ++i) {
    const auto index = 2 * static_cast<Index>(i);
    for (double& place : inputs.at.col(axes_.numbers[i]).segment(first, count)) {
      place = warped(within(place), warps_[index], warps_[index + 1]);
    }
  }
}

double Kernel::warp_slope(Index axis, double unwarped) const {
  if (warps_.size() == 0) return 1;
  const auto at = std::lower_bound(axes_.numbers.begin(), axes_.numbers.end(), axis);
  // `axis` is a number (choices have no slope), and numbers ascend. Two exponents each.
  const Index index = 2 * (at - axes_.numbers.begin());
  const double a = warps_[index];
  const double b = warps_[index + 1];
  const double x = within(unwarped);
  return a * b * std::pow(x, a - 1) * std::pow(1 - std::pow(x, a), b - 1);
}

// Multiplies by the factor of a conditional parameter. A Matern factor is a polynomial of s times
// exp(-s): the polynomial goes into `product`, s into `exponent`, so that row() needs a single exp.
void Kernel::multiply_conditional(Index axis, const Inputs& inputs, Index first, Index count,
                                  const Inputs& points, Index x, ArrayXd& product,
                                  ArrayXd& exponent) const {
  const Factor& factor = factors_[static_cast<std::size_t>(axis)];
  const auto active = inputs.active.col(axis).segment(first, count).array();
  if (points.active(x, axis) == 0) {
    product *= active * factor.tie + (1 - active);  // one point has it; neither has it
    return;
  }
  const auto at = inputs.at.col(axis).segment(first, count).array();
  const double here = points.at(x, axis);
  ArrayXd s(count);
  if (axes_.list[static_cast<std::size_t>(axis)].categorical) {
    s = active * std::sqrt(factor.weight) * (at != here).cast<double>();
  } else {
    s = active * std::sqrt(factor.weight) * (at - here).abs();
  }
  exponent += s;
  product *= active * (1 + s + s.square() / 3) + (1 - active) * factor.tie;
}

void Kernel::row(const Inputs& inputs, Index first, Index count, const Inputs& points, Index x,
                 Row& out) const {
  ArrayXd squared = ArrayXd::Zero(count);
  for (const Index i : shared_) {
    const Factor& factor = factors_[static_cast<std::size_t>(i)];
    const auto at = inputs.at.col(i).segment(first, count).array();
    const double here = points.at(x, i);
    if (axes_.list[static_cast<std::size_t>(i)].categorical) {
      squared += factor.weight * (at != here).cast<double>();
    } else {
      squared += factor.weight * (at - here).square();
    }
  }
  // The shared kernel is (1 + s + s^2/3) exp(-s) with s^2 = `squared`. `exponent` sums s over it
  // and all conditional factors, `others` is the product of their polynomials and ties.
  ArrayXd exponent = squared.sqrt();
  ArrayXd others = ArrayXd::Ones(count);
  const ArrayXd linear = 1 + exponent;
  for (const Index i : conditional_) {
    multiply_conditional(i, inputs, first, count, points, x, others, exponent);
  }
  others *= (-exponent).exp();
  out.value = (linear + squared / 3) * others;
  out.slope = linear * others / 3;
}

// With s^2 = sum of weight * distance^2, d k / d x = weight * (other - x) * row.slope for shared
// numbers. A conditional one has its own s: d log(Matern) / d s = -s (1 + s) / (3 (1 + s + s^2/3)).
MatrixXd Kernel::slopes(const Inputs& inputs, const Inputs& points, Index x, const Row& row,
                        const MatrixXd& weights) const {
  const Index count = row.value.size();
  MatrixXd out = MatrixXd::Zero(inputs.at.cols(), weights.cols());
  const MatrixXd shared = weights.array().colwise() * row.slope;
  const Eigen::RowVectorXd total = shared.colwise().sum();
  for (const Index i : shared_) {
    if (axes_.list[static_cast<std::size_t>(i)].categorical) continue;
    const auto at = inputs.at.col(i).head(count);
    out.row(i) = factors_[static_cast<std::size_t>(i)].weight *
                 (at.transpose() * shared - points.at(x, i) * total);
  }
  for (const Index i : conditional_) {
    const bool fixed = axes_.list[static_cast<std::size_t>(i)].categorical;
    if (fixed || points.active(x, i) == 0) continue;
    const double weight = factors_[static_cast<std::size_t>(i)].weight;
    const ArrayXd offset = inputs.at.col(i).head(count).array() - points.at(x, i);
    const ArrayXd s = std::sqrt(weight) * offset.abs();
    const ArrayXd share = row.value * inputs.active.col(i).head(count).array() * (1 + s) /
                          (3 * (1 + s + s.square() / 3)) * offset * weight;
    out.row(i) = share.matrix().transpose() * weights;
  }
  return out;
}

// Returns the sum of `weighted` over the pairs that differ in a choice, both triangles.
double Kernel::contract_shared_choice(const Inputs& inputs, Index axis,
                                      const MatrixXd& weighted) const {
  double out = 0;
  const Index n = weighted.rows();
  for (Index j = 0; j + 1 < n; ++j) {
    const auto at = inputs.at.col(axis).segment(j + 1, n - j - 1).array();
    out += (weighted.col(j).segment(j + 1, n - j - 1).array() *
            (at != inputs.at(j, axis)).cast<double>())
               .sum();
  }
  return 2 * out;
}

// Adds to the gradient and, if numbers are warped, to the derivatives with respect to the positions
// of the inputs. `weighted` = weights * values, lower triangle.
void Kernel::contract_conditional(const Inputs& inputs, Index axis, const MatrixXd& weighted,
                                  VectorXd& gradient, MatrixXd& by_place) const {
  const Factor& factor = factors_[static_cast<std::size_t>(axis)];
  const bool categorical = axes_.list[static_cast<std::size_t>(axis)].categorical;
  const double scale = std::sqrt(factor.weight);
  double by_length = 0;
  double by_tie = 0;
  const Index n = weighted.rows();
  for (Index j = 0; j + 1 < n; ++j) {
    const Index count = n - j - 1;
    const auto active = inputs.active.col(axis).segment(j + 1, count).array();
    const auto column = weighted.col(j).segment(j + 1, count).array();
    // Point j lacks the parameter: the factor is the tie where the other point has it, else 1.
    if (inputs.active(j, axis) == 0) {
      by_tie += (column * active).sum();
      continue;
    }
    ArrayXd offset = inputs.at(j, axis) - inputs.at.col(axis).segment(j + 1, count).array();
    if (categorical) offset = (offset != 0).cast<double>().eval();
    const ArrayXd s = scale * offset.abs();
    // Times s^2 this is the derivative by log(length); times offset * weight it is the negated
    // derivative by the position (see slopes()).
    const ArrayXd share = column * active * (1 + s) / (3 * (1 + s + s.square() / 3));
    by_tie += (column * (1 - active)).sum();
    by_length += (share * s.square()).sum();
    if (warps_.size() == 0 || categorical) continue;
    const ArrayXd pull = 2 * factor.weight * share * offset;
    by_place(j, axis) -= pull.sum();
    by_place.col(axis).segment(j + 1, count).array() += pull;
  }
  const Index branch = axes_.list[static_cast<std::size_t>(axis)].branch;
  // Twice, for both triangles; the diagonal does not change.
  gradient[axis] += 2 * (by_length + by_tie * factor.tie_slope);
  gradient[static_cast<Index>(axes_.list.size()) + 1 + branch] += 2 * by_tie * factor.tie_change;
}

// Applies the chain rule from positions to the logarithms of the exponents a and b of warped().
void Kernel::contract_warps(const Inputs& unwarped, const MatrixXd& by_place,
                            VectorXd& gradient) const {
  const Index first = gradient.size() - warps_.size();
  for (std::size_t i = 0; i < axes_.numbers.size(); ++i) {
    const Index axis = axes_.numbers[i];
    const auto index = 2 * static_cast<Index>(i);
    const double a = warps_[index];
    const double b = warps_[index + 1];
    for (Index j = 0; j < by_place.rows(); ++j) {
      const double x = within(unwarped.at(j, axis));
      const double power = std::pow(x, a);
      const double rest = std::pow(1 - power, b);
      const double by_log_a = a * b * rest / (1 - power) * power * std::log(x);
      gradient[first + index] += by_place(j, axis) * by_log_a;
      gradient[first + index + 1] -= by_place(j, axis) * b * rest * std::log1p(-power);
    }
  }
}

VectorXd Kernel::contract(const Inputs& unwarped, const Inputs& warped, const MatrixXd& values,
                          const MatrixXd& slopes, const MatrixXd& weights) const {
  const auto lengths = static_cast<Index>(axes_.list.size());
  VectorXd gradient = VectorXd::Zero(lengths + 1 + axes_.branches + warps_.size());
  const Index n = weights.rows();
  MatrixXd by_place = MatrixXd::Zero(n, warps_.size() == 0 ? 0 : lengths);
  MatrixXd weighted = weights.cwiseProduct(slopes);
  // sum g_jl (x_j - x_l)^2 = 2 x' (x * g - G x) for row sums g: two products for all numbers.
  const auto symmetric = weighted.selfadjointView<Eigen::Lower>();
  const MatrixXd at = warped.at.topRows(n);
  const MatrixXd product = symmetric * at;
  const VectorXd sums = symmetric * VectorXd::Ones(n);
  for (const Index i : shared_) {
    const double weight = factors_[static_cast<std::size_t>(i)].weight;
    if (axes_.list[static_cast<std::size_t>(i)].categorical) {
      gradient[i] = weight * contract_shared_choice(warped, i, weighted);
      continue;
    }
    // The negated derivative by each position (see slopes()); times the positions it is the
    // derivative by log(length).
    const VectorXd pull = 2 * weight * (at.col(i).cwiseProduct(sums) - product.col(i));
    gradient[i] = at.col(i).dot(pull);
    if (warps_.size() > 0) by_place.col(i) = -pull;
  }
  if (!conditional_.empty()) {
    weighted = weights.cwiseProduct(values);
    for (const Index i : conditional_) {
      contract_conditional(warped, i, weighted, gradient, by_place);
    }
  }
  if (warps_.size() > 0) contract_warps(unwarped, by_place, gradient);
  return gradient;
}

}  // namespace fettle::search::gp
