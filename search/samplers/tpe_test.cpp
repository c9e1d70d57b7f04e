// The Parzen estimator alone, and the search with it against random search.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "search/samplers/parzen.h"
#include "search/search.h"
#include "search/space/columns.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

// Five points near 0.3 of a continuum, with equal cells and choices.
class ParzenTest : public ::testing::Test {
 protected:
  ParzenTest()
      : space_(std::move(
                   Space::make({real("x", 0, 1), integer("n", 1, 9), choice("c", {"a", "b", "c"}),
                                integer("k", 1, 20, api::Scale::kLog)}))
                   .value()),
        columns_(space_) {
    for (int i = 0; i < 5; ++i) {
      const Point point = {0.25 + 0.02 * i, 2, 1, 4};
      columns_.push(&point);
      trials_.push_back(i);
    }
  }

  Space space_;
  Columns columns_;
  std::vector<std::int64_t> trials_;
};

TEST_F(ParzenTest, ContinuousDensityIntegratesToOne) {
  const Parzen parzen(space_, {0}, columns_, trials_);
  double sum = 0;
  constexpr int kSteps = 10000;
  for (int i = 0; i < kSteps; ++i) {
    sum += std::exp(parzen.log_density({(i + 0.5) / kSteps, 0, 0, 0})) / kSteps;
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST_F(ParzenTest, DiscreteMassesSumToOne) {
  for (const std::size_t parameter : {1, 2, 3}) {
    const Parzen parzen(space_, {parameter}, columns_, trials_);
    double sum = 0;
    for (std::uint64_t cell = 0; cell < space_.dimension(parameter).cells(); ++cell) {
      Point point(4, 0);
      point[parameter] = static_cast<double>(cell);
      sum += std::exp(parzen.log_density(point));
    }
    EXPECT_NEAR(sum, 1, 1e-3) << parameter;  // narrow cells take the density at their centre
  }
}

TEST_F(ParzenTest, DrawsFollowTheDensity) {
  const Parzen parzen(space_, {1, 2}, columns_, trials_);
  Random random(5);
  constexpr int kDraws = 40000;
  std::vector<double> counts(27, 0);
  Point point(4, 0);
  for (int i = 0; i < kDraws; ++i) {
    parzen.draw(random, point);
    counts[static_cast<std::size_t>(point[1] * 3 + point[2])] += 1;
  }
  double chi_square = 0;
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    point[1] = std::floor(static_cast<double>(cell) / 3);
    point[2] = static_cast<double>(cell % 3);
    const double expected = kDraws * std::exp(parzen.log_density(point));
    chi_square += std::pow(counts[cell] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 54.1);  // 26 degrees of freedom, exceeded once in a thousand
}

TEST_F(ParzenTest, PeaksWhereThePointsAre) {
  const Parzen parzen(space_, {0, 1, 2, 3}, columns_, trials_);
  const double there = parzen.log_density({0.29, 2, 1, 4});
  EXPECT_GT(there, parzen.log_density({0.9, 2, 1, 4}));
  EXPECT_GT(there, parzen.log_density({0.29, 7, 1, 4}));
  EXPECT_GT(there, parzen.log_density({0.29, 2, 0, 4}));
  EXPECT_GT(there, parzen.log_density({0.29, 2, 1, 19}));
}

TEST_F(ParzenTest, WithoutPointsItIsThePrior) {
  const Parzen parzen(space_, {0, 2}, columns_, {});
  EXPECT_EQ(parzen.log_density({0.2, 0, 0, 0}), parzen.log_density({0.8, 0, 2, 0}));
  EXPECT_GT(parzen.log_density({0.5, 0, 0, 0}), parzen.log_density({0.0, 0, 0, 0}));
}

TEST_F(ParzenTest, ManyPointsAtOnceEqualSinglePoints) {
  const Parzen parzen(space_, {0, 1, 2, 3}, columns_, trials_);
  Random random(6);
  std::vector<Point> points(21, Point(4, 0));
  for (Point& point : points) parzen.draw(random, point);
  const std::vector<double> at_once = parzen.log_densities(points);
  ASSERT_EQ(at_once.size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(at_once[i], parzen.log_density(points[i]));
  }
  EXPECT_TRUE(parzen.log_densities({}).empty());
}

// The expected result of `ascending`, by sorting.
std::vector<std::uint32_t> sorted(const Columns& columns, std::size_t parameter,
                                  const std::vector<std::int64_t>& trials) {
  std::vector<std::uint32_t> out(trials.size());
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i;
  std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
    return columns.at(parameter, trials[a]) < columns.at(parameter, trials[b]);
  });
  return out;
}

TEST(Columns, KeepTheOrderAfterAnyPushesAndPops) {
  const Space space = Space::make({real("x", 0, 1), choice("c", {"a", "b"}),
                                   only_if(integer("n", 1, 50), "c", {"a"})})
                          .value();
  Random random(7);
  Columns columns(space);
  for (int move = 0; move < 6000; ++move) {
    if (move % 500 == 499) {  // the pending trials of one call
      for (int i = 0; i < 40; ++i) columns.pop();
    }
    const Point point = space.draw(random);
    columns.push(random.below(20) == 0 ? nullptr : &point);
    if (move % 97 > 0) continue;
    for (const std::size_t parameter : {0, 2}) {
      for (const std::int64_t begin : {std::int64_t{0}, columns.window_begin()}) {
        std::vector<std::int64_t> trials;
        for (std::int64_t trial = begin; trial < columns.size(); ++trial) {
          if (is_active(columns.at(parameter, trial)) && random.below(8) > 0) {
            trials.push_back(trial);
          }
        }
        ASSERT_EQ(columns.ascending(parameter, trials), sorted(columns, parameter, trials));
      }
    }
  }
}

// A smooth bowl with a log axis, a choice and a branch; its minimum is 0.
double bowl(const Json& point) {
  const double x = point.find("x")->as_double() - 0.7;
  const double rate = std::log10(point.find("lr")->as_double()) + 3;
  const double layers = static_cast<double>(point.find("layers")->as_integer()) - 4;
  double out = 4 * x * x + 0.3 * rate * rate + 0.05 * layers * layers;
  const Json* momentum = point.find("momentum");
  if (momentum == nullptr) return out + 0.3;
  return out + 2 * std::pow(momentum->as_double() - 0.9, 2);
}

Problem bowl_problem(const std::string& algorithm, std::int64_t seed) {
  return problem_of(
      {real("x", 0, 1), real("lr", 1e-6, 1, api::Scale::kLog), integer("layers", 1, 8),
       choice("opt", {"sgd", "adam"}), only_if(real("momentum", 0, 1), "opt", {"sgd"})},
      algorithm, seed);
}

// The best value after `trials` trials, with `pending` of them always unfinished.
double best_of(const Problem& problem, std::size_t trials, std::size_t pending) {
  auto sampler = std::move(make_sampler(problem)).value();
  History history;
  double best = 1e9;
  for (std::size_t i = 0; i < trials; ++i) {
    history.trials.push_back(sampler->suggest(history, 1).points.at(0));
    if (i < pending) continue;
    const double value = bowl(history.trials[i - pending]);
    history.events.push_back(result(static_cast<std::int64_t>(i - pending), value));
    best = std::min(best, value);
  }
  return best;
}

double median_best(const std::string& algorithm, std::size_t pending) {
  std::vector<double> best;
  for (std::int64_t seed = 0; seed < 15; ++seed) {
    best.push_back(best_of(bowl_problem(algorithm, seed), 60 + pending, pending));
  }
  std::sort(best.begin(), best.end());
  return best[best.size() / 2];
}

TEST(Tpe, BeatsRandomSearch) { EXPECT_LT(median_best("tpe", 0), 0.5 * median_best("random", 0)); }

TEST(Tpe, BeatsRandomSearchWithEightPending) {
  EXPECT_LT(median_best("tpe", 8), 0.6 * median_best("random", 8));
}

TEST(Tpe, StoppedTrialsDoNotMislead) {
  // Trials with a large x look best at first and are stopped; trials with a small x end well.
  Problem problem = problem_of({real("x", 0, 1)}, "tpe");
  History history;
  for (std::int64_t trial = 0; trial < 40; ++trial) {
    const double x = static_cast<double>(trial) / 40;
    history.trials.push_back(Json::object({{"x", x}}));
    history.events.push_back(x > 0.5 ? fact(trial, api::FactKind::kStopped, 1, -5.0)
                                     : result(trial, 1 + x));
  }
  const auto sampler = std::move(make_sampler(problem)).value();
  int small = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    const Json point = sampler->suggest(history, 1).points.at(0);
    small += point.find("x")->as_double() < 0.4;
    history.trials.push_back(point);
  }
  EXPECT_GE(small, 14);
}

TEST(Tpe, PendingTrialsKeepOthersAway) {
  Problem problem = problem_of({real("x", 0, 1)}, "tpe");
  History history;
  for (std::int64_t trial = 0; trial < 20; ++trial) {
    const double x = (static_cast<double>(trial) + 0.5) / 20;
    history.trials.push_back(Json::object({{"x", x}}));
    history.events.push_back(result(trial, std::abs(x - 0.5)));
  }
  const auto sampler = std::move(make_sampler(problem)).value();
  const Suggestion alone = sampler->suggest(history, 1);
  const Suggestion many = sampler->suggest(history, 40);
  const auto spread = [](const Suggestion& suggestion) {
    double out = 0;
    for (const Json& point : suggestion.points) {
      out = std::max(out, std::abs(point.find("x")->as_double() - 0.5));
    }
    return out;
  };
  EXPECT_LT(spread(alone), 0.2);
  EXPECT_GT(spread(many), 0.25);
}

}  // namespace
}  // namespace fettle::search
