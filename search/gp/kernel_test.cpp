// The kernel's values, its derivatives against finite differences, and its positive definiteness.
#include "search/gp/process/kernel.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "search/testing/gaussian_process.h"
#include "search/testing/problems.h"

namespace fettle::search::gp {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

double matern(double distance) {
  const double s = std::sqrt(5.0) * distance;
  return (1 + s + s * s / 3) * std::exp(-s);
}

// All pairs, both triangles.
MatrixXd covariances(const Kernel& kernel, const Inputs& inputs, MatrixXd* slopes = nullptr) {
  const Index n = inputs.at.rows();
  Inputs warped = inputs;
  kernel.warp(warped, 0, n);
  MatrixXd out(n, n);
  if (slopes != nullptr) slopes->resize(n, n);
  Kernel::Row row;
  for (Index j = 0; j < n; ++j) {
    kernel.row(warped, 0, n, warped, j, row);
    out.col(j) = row.value;
    if (slopes != nullptr) slopes->col(j) = row.slope;
  }
  return out;
}

double between(const Space& space, const Hyperparameters& hyperparameters, const char* a,
               const char* b) {
  Inputs inputs(2, static_cast<Index>(space.dimensions()));
  inputs.set(0, space, space.read(*parse_json(a)).value());
  inputs.set(1, space, space.read(*parse_json(b)).value());
  return covariances(Kernel(axes_of(space), hyperparameters), inputs)(0, 1);
}

TEST(Kernel, NumbersChoicesAndIntegersShareOneDistance) {
  const Space space =
      Space::make({search::testing::real("x", -2, 2), search::testing::integer("n", 0, 9),
                   search::testing::choice("c", {"a", "b", "c"})})
          .value();
  Hyperparameters h;
  h.log_lengths = Eigen::Vector3d(std::log(0.5), std::log(0.2), std::log(2.0));
  // x differs by 1/4, n by 3/10 of its range, c differs.
  const double r = std::sqrt(0.25 + 2.25 + 0.25);
  EXPECT_NEAR(between(space, h, R"({"x":0,"n":2,"c":"a"})", R"({"x":1,"n":5,"c":"c"})"), matern(r),
              1e-14);
  EXPECT_EQ(between(space, h, R"({"x":0,"n":2,"c":"a"})", R"({"x":0,"n":2,"c":"a"})"), 1);
}

TEST(Kernel, AConditionalParameterCountsWhereBothPointsHaveIt) {
  const Space space =
      Space::make({search::testing::choice("o", {"a", "b", "c", "d"}),
                   search::testing::only_if(search::testing::real("m", 0, 1), "o", {"a", "b"})})
          .value();
  Hyperparameters h;
  h.log_lengths = Eigen::Vector2d(std::log(2.0), std::log(0.5));
  h.ties = VectorXd::Constant(1, 0.0);  // half of the largest constant
  const double other = matern(0.5);
  EXPECT_NEAR(between(space, h, R"({"o":"a","m":0})", R"({"o":"b","m":0.5})"), other * matern(1),
              1e-14);
  EXPECT_NEAR(between(space, h, R"({"o":"c"})", R"({"o":"d"})"), other, 1e-14);
  const double tie = between(space, h, R"({"o":"a","m":0.1})", R"({"o":"d"})") / other;
  EXPECT_NEAR(tie, 0.5 / std::sqrt(9.0 / 8 + 3 * std::sqrt(5.0) / 16 / 0.5), 1e-14);
  EXPECT_NEAR(between(space, h, R"({"o":"a","m":0.9})", R"({"o":"d"})") / other, tie, 1e-14);
}

// With the largest constants, and with short and long length scales.
TEST(Kernel, IsPositiveDefinite) {
  const Space space = testing::mixed_space();
  const Axes axes = axes_of(space);
  Random random(3);
  for (const double log_length : {-4.0, -1.0, 0.0, 1.0, 4.0}) {
    Hyperparameters h;
    h.log_lengths = VectorXd::Constant(static_cast<Index>(axes.list.size()), log_length);
    h.ties = VectorXd::Constant(axes.branches, 50.0);
    const MatrixXd k = covariances(Kernel(axes, h), testing::draw_inputs(space, random, 150));
    EXPECT_LT((k - k.transpose()).cwiseAbs().maxCoeff(), 1e-15);
    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(k, Eigen::EigenvaluesOnly);
    EXPECT_GT(eigen.eigenvalues().minCoeff(), -1e-12) << log_length;
  }
}

// The constant of a conditional number is the largest possible: with a slightly larger one, a dense
// set of points would have a negative eigenvalue.
TEST(Kernel, TheLargestTieIsTight) {
  constexpr Index kPoints = 400;
  for (const double length : {0.1, 0.5, 2.0}) {
    MatrixXd k(kPoints, kPoints);
    for (Index i = 0; i < kPoints; ++i) {
      for (Index j = 0; j < kPoints; ++j) {
        k(i, j) = matern(std::abs(static_cast<double>(i - j)) / (kPoints - 1) / length);
      }
    }
    k.diagonal().array() += 1e-11;
    const VectorXd ones = VectorXd::Ones(kPoints);
    const double norm = ones.dot(k.llt().solve(ones));
    EXPECT_NEAR(norm, 9.0 / 8 + 3 * std::sqrt(5.0) / 16 / length, 0.02 * norm) << length;
  }
}

TEST(Kernel, DerivativesByHyperparametersAreRight) {
  const Space space = testing::mixed_space();
  const Axes axes = axes_of(space);
  EXPECT_EQ(axes.branches, 3);
  Random random(4);
  for (int round = 0; round < 5; ++round) {
    const Inputs inputs = testing::draw_inputs(space, random, 21);
    const Hyperparameters h = testing::draw_hyperparameters(axes, random);
    MatrixXd weights(21, 21);
    for (Index i = 0; i < 21; ++i) {
      for (Index j = 0; j <= i; ++j) weights(i, j) = weights(j, i) = random.normal();
    }
    const auto sum = [&](const VectorXd& packed) {
      const Kernel kernel(axes, Hyperparameters::unpack(axes, packed));
      return covariances(kernel, inputs).cwiseProduct(weights).sum();
    };
    MatrixXd slopes;
    const Kernel kernel(axes, h);
    const MatrixXd values = covariances(kernel, inputs, &slopes);
    Inputs warped = inputs;
    kernel.warp(warped, 0, 21);
    const VectorXd gradient = kernel.contract(inputs, warped, values, slopes, weights);
    const VectorXd expected = testing::differences(sum, h.pack());
    for (Index i = 0; i < gradient.size(); ++i) EXPECT_NEAR(gradient[i], expected[i], 1e-7) << i;
  }
}

TEST(Kernel, DerivativesByThePointAreRight) {
  const Space space = testing::mixed_space();
  const Axes axes = axes_of(space);
  Random random(5);
  for (int round = 0; round < 30; ++round) {
    const Inputs inputs = testing::draw_inputs(space, random, 13);
    Inputs at = testing::draw_inputs(space, random, 1);
    const Kernel kernel(axes, testing::draw_hyperparameters(axes, random));
    const MatrixXd weights = MatrixXd::NullaryExpr(13, 2, [&] { return random.normal(); });
    Kernel::Row row;
    kernel.row(inputs, 0, 13, at, 0, row);
    const MatrixXd slopes = kernel.slopes(inputs, at, 0, row, weights);
    for (Index w = 0; w < 2; ++w) {
      const auto sum = [&](const VectorXd& x) {
        Inputs moved = at;
        moved.at.row(0) = x.transpose();
        Kernel::Row there;
        kernel.row(inputs, 0, 13, moved, 0, there);
        return there.value.matrix().dot(weights.col(w));
      };
      const VectorXd expected = testing::differences(sum, at.at.row(0).transpose());
      for (std::size_t i = 0; i < axes.list.size(); ++i) {
        if (axes.list[i].categorical) continue;
        const auto axis = static_cast<Index>(i);
        EXPECT_NEAR(slopes(axis, w), expected[axis], 1e-7) << i;
      }
    }
  }
}

}  // namespace
}  // namespace fettle::search::gp
