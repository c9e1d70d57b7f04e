// The distributions of the evolution strategy: step by step against the Python package `cmaes`
// (testdata/cmaes.json, written by tests/golden/cmaes_golden.py), and further laws.
#include "search/samplers/cma_es_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/test_paths.h"
#include "search/maths/normal.h"
#include "search/samplers/categorical_distribution.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

const Json& golden() {
  static const Json kDocument = [] {
    std::ifstream file(source_path("search/testdata/cmaes.json"));
    std::stringstream text;
    text << file.rdbuf();
    return std::move(parse_json(text.str())).value();
  }();
  return kDocument;
}

Eigen::VectorXd vector_of(const Json& numbers) {
  const Json::Array& array = numbers.as_array();
  Eigen::VectorXd out(static_cast<Eigen::Index>(array.size()));
  for (std::size_t i = 0; i < array.size(); ++i) {
    out[static_cast<Eigen::Index>(i)] = array[i].as_double();
  }
  return out;
}

Eigen::MatrixXd matrix_of(const Json& rows) {
  const auto size = static_cast<Eigen::Index>(rows.as_array().size());
  Eigen::MatrixXd out(size, size);
  for (Eigen::Index i = 0; i < size; ++i) {
    out.row(i) = vector_of(rows.as_array()[static_cast<std::size_t>(i)]).transpose();
  }
  return out;
}

// Axes with the given numbers of values on the unit interval; 0 for a continuum.
std::vector<Dimension> axes_of(const std::vector<int>& cells) {
  std::vector<Dimension> out;
  for (const int count : cells) {
    const api::Parameter parameter = count == 0 ? real("x", 0, 1) : integer("n", 1, count);
    out.push_back(std::move(Dimension::make(parameter)).value());
  }
  return out;
}

CmaEs distribution_over(const std::vector<Dimension>& axes, Eigen::VectorXd mean, double sigma) {
  std::vector<const Dimension*> pointers;
  for (const Dimension& axis : axes) pointers.push_back(&axis);
  const auto n = static_cast<Eigen::Index>(axes.size());
  return CmaEs(pointers, {std::move(mean), sigma, Eigen::MatrixXd::Identity(n, n)});
}

TEST(CmaEs, UpdatesLikeThePackage) {
  for (const Json& example : golden().find("margin")->as_array()) {
    std::vector<int> cells;
    for (const Json& count : example.find("cells")->as_array()) {
      cells.push_back(static_cast<int>(count.as_integer()));
    }
    const std::vector<Dimension> axes = axes_of(cells);
    CmaEs cma = distribution_over(axes, vector_of(*example.find("mean")),
                                  example.find("sigma")->as_double());
    int number = 0;
    for (const Json& generation : example.find("generations")->as_array()) {
      std::vector<RankedPosition> positions;
      for (const Json& position : generation.find("positions")->as_array()) {
        positions.push_back({vector_of(position), false});
      }
      cma.update(positions);
      SCOPED_TRACE(example.find("cells")->dump() + ", generation " + std::to_string(++number));
      const double sigma = generation.find("sigma")->as_double();
      EXPECT_NEAR(cma.sigma(), sigma, 1e-9 * sigma);
      EXPECT_LT((cma.mean() - vector_of(*generation.find("mean"))).norm(), 1e-9);
      const Eigen::MatrixXd covariance = matrix_of(*generation.find("covariance"));
      EXPECT_LT((cma.covariance() - covariance).norm(), 1e-9 * covariance.norm());
      const Eigen::VectorXd margins = vector_of(*generation.find("margins"));
      EXPECT_LT((cma.margins() - margins).norm(), 1e-8 * margins.norm());
    }
  }
}

TEST(CategoricalDistribution, UpdatesLikeThePackage) {
  for (const Json& example : golden().find("categorical")->as_array()) {
    std::vector<std::size_t> sizes;
    for (const Json& size : example.find("sizes")->as_array()) {
      sizes.push_back(static_cast<std::size_t>(size.as_integer()));
    }
    CategoricalDistribution distribution(sizes);
    int number = 0;
    for (const Json& generation : example.find("generations")->as_array()) {
      std::vector<RankedChoices> ranked;
      for (const Json& row : generation.find("choices")->as_array()) {
        Choices choices;
        for (const Json& choice : row.as_array()) {
          choices.emplace_back(static_cast<std::size_t>(choice.as_integer()));
        }
        ranked.push_back({choices, false});
      }
      distribution.update(ranked);
      ++number;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Json::Array& expected = generation.find("shares")->as_array()[i].as_array();
        for (std::size_t k = 0; k < sizes[i]; ++k) {
          EXPECT_NEAR(distribution.probabilities(i)[k], expected[k].as_double(), 1e-9)
              << "parameter " << i << ", choice " << k << ", generation " << number;
        }
      }
    }
  }
}

TEST(CmaEs, StartsWarmLikeThePackage) {
  for (const Json& example : golden().find("warm_start")->as_array()) {
    std::vector<Eigen::VectorXd> points;
    for (const Json& point : example.find("points")->as_array()) points.push_back(vector_of(point));
    const CmaEs::Start start = warm_start(points);
    EXPECT_LT((start.mean - vector_of(*example.find("mean"))).norm(), 1e-12);
    EXPECT_NEAR(start.sigma, example.find("sigma")->as_double(), 1e-12);
    EXPECT_LT((start.covariance - matrix_of(*example.find("covariance"))).norm(), 1e-9);
  }
}

TEST(CmaEs, ATiedGenerationMovesTheMeanToItsCentre) {
  const std::vector<Dimension> axes = axes_of({0, 0});
  CmaEs cma = distribution_over(axes, Eigen::Vector2d(0.5, 0.5), 0.2);
  std::vector<RankedPosition> generation;
  Eigen::VectorXd centre = Eigen::VectorXd::Zero(2);
  Random random(1);
  for (int i = 0; i < 6; ++i) {
    generation.push_back({cma.draw(random), i > 0});
    centre += generation.back().position / 6;
  }
  cma.update(generation);
  EXPECT_LT((cma.mean() - centre).norm(), 1e-12);
}

// Long selection for a single cell: without the margin the width along the integer would vanish.
TEST(CmaEs, TheMarginKeepsNeighboursReachable) {
  const std::vector<Dimension> axes = axes_of({10});
  CmaEs cma = distribution_over(axes, Eigen::VectorXd::Constant(1, 0.55), 0.2);
  Random random(2);
  for (int generation = 0; generation < 200; ++generation) {
    std::vector<RankedPosition> positions;
    for (int i = 0; i < 6; ++i) {
      // Cell 5 is the best.
      positions.push_back({cma.draw(random), false});
    }
    std::stable_sort(positions.begin(), positions.end(), [&](const auto& a, const auto& b) {
      const auto loss = [&](const RankedPosition& p) {
        return std::abs(axes[0].from_unit(p.position[0]) - 5);
      };
      return loss(a) < loss(b);
    });
    cma.update(positions);
  }
  int elsewhere = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) elsewhere += axes[0].from_unit(cma.draw(random)[0]) != 5;
  // At least the margin, 1 / (1 axis * 6 positions), in total.
  EXPECT_GT(elsewhere, 0.9 * kDraws / 6);
}

TEST(CmaEs, DrawsStayWithinBoundsAndAdoptedPointsNearTheMean) {
  const std::vector<Dimension> axes = axes_of({0, 0, 7});
  const CmaEs cma = distribution_over(axes, Eigen::Vector3d(0.99, 0.01, 0.5), 0.3);
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const Eigen::VectorXd position = cma.draw(random, 1 + i % 3);
    EXPECT_TRUE(position[0] >= 0 && position[0] <= 1 && position[1] >= 0 && position[1] <= 1);
  }
  CmaEs narrow = distribution_over(axes, Eigen::Vector3d(0.5, 0.5, 0.5), 0.01);
  const Eigen::VectorXd far = narrow.adopt(Eigen::Vector3d(0.9, std::nan(""), 0.5), random);
  EXPECT_LT((far - narrow.mean()).norm(), 0.01 * (std::sqrt(3) + 6.0 / 5) + 1e-12);
  const Eigen::VectorXd near = narrow.adopt(Eigen::Vector3d(0.505, 0.495, 0.5), random);
  EXPECT_EQ(near[0], 0.505);
  EXPECT_EQ(axes[2].from_unit(near[2]), 3);
}

TEST(CategoricalDistribution, LearnsTheBestChoiceAndKeepsAFloor) {
  CategoricalDistribution distribution({4, 3});
  Random random(4);
  for (int generation = 0; generation < 60; ++generation) {
    std::vector<RankedChoices> ranked;
    for (int i = 0; i < 8; ++i) ranked.push_back({distribution.draw(random), false});
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
      return (*a.choices[0] != 2) < (*b.choices[0] != 2);
    });
    for (RankedChoices& row : ranked) row.choices[1].reset();  // never active: the shares stay
    distribution.update(ranked);
  }
  EXPECT_GT(distribution.probabilities(0)[2], 0.75);
  for (const double share : distribution.probabilities(0)) EXPECT_GT(share, 0.04);
  for (const double share : distribution.probabilities(1)) EXPECT_NEAR(share, 1.0 / 3, 1e-9);
}

TEST(CategoricalDistribution, DrawsFollowItsShares) {
  CategoricalDistribution distribution({3});
  distribution.favour({{std::size_t{1}}});
  Random random(5);
  int favoured = 0;
  for (int i = 0; i < 30000; ++i) favoured += *distribution.draw(random)[0] == 1;
  EXPECT_NEAR(favoured, 30000 * distribution.probabilities(0)[1], 400);
}

TEST(Normal, QuantilesInvertTheDistribution) {
  for (const double p : {1e-300, 1e-10, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1, 1e-12) << p;
  }
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
}

}  // namespace
}  // namespace fettle::search
