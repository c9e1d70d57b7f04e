// Cost-aware searches: the ledger, the model of costs, and the saving.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "search/cost_ledger.h"
#include "search/gp/candidates.h"
#include "search/gp/cost_model.h"
#include "search/gp/expected_cost.h"
#include "search/search.h"
#include "search/testing/gaussian_process.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

double number(const Json& point, const char* name) { return point.find(name)->as_double(); }

Event costing(Event event, std::optional<double> cost) {
  event.fact.cost = cost;
  return event;
}

Event costing(std::int64_t trial, std::optional<double> cost) {
  return costing(result(trial, 0.5), cost);
}

Space square() { return Space::make({real("x", 0, 1), real("y", 0, 1)}).value(); }

// A ledger of trials at random points.
CostLedger ledger_of(std::int64_t trials, const CostBudget& budget) {
  const Space space = square();
  Random random(1);
  CostLedger out(budget);
  for (std::int64_t i = 0; i < trials; ++i) {
    const Point point = space.draw(random);
    out.add_trial(&point);
  }
  return out;
}

// The ledger's observations as costs instead of logarithms.
std::vector<double> costs_in(const CostLedger& ledger) {
  std::vector<double> out = ledger.observations(100).log_costs;
  for (double& cost : out) cost = std::exp(cost);
  return out;
}

// ---- The ledger --------------------------------------------------------------------------------

TEST(CostLedger, AnEarlyEndCountsWithItsCostToTheEnd) {
  CostLedger ledger = ledger_of(6, {.max_trials = 100, .max_cost = {}, .last_step = 27});
  ledger.add_event(costing(0, 54));
  ledger.add_event(costing(fact(1, api::FactKind::kStopped, 9, 0.5), 20));
  ledger.add_event(costing(fact(2, api::FactKind::kFailed, 1, std::nullopt), 2));
  ledger.add_event(costing(fact(3, api::FactKind::kFailed, 0, std::nullopt), 3));  // no step
  ledger.add_event(costing(fact(4, api::FactKind::kRung, 9, 0.5), 30));            // runs on
  ledger.add_event(costing(5, std::nullopt));
  EXPECT_THAT(costs_in(ledger),
              ElementsAre(DoubleNear(54, 1e-9), DoubleNear(60, 1e-9), DoubleNear(54, 1e-9)));
}

// Trials that pause at a rung and resume end more than once.
TEST(CostLedger, TheLastWordCounts) {
  CostLedger ledger = ledger_of(2, {.max_trials = 0, .max_cost = 100, .last_step = 10});
  ledger.add_event(costing(fact(0, api::FactKind::kStopped, 1, 0.5), 4));
  ledger.add_event(costing(1, 10));
  ledger.add_event(costing(0, 30));
  EXPECT_THAT(costs_in(ledger), ElementsAre(DoubleNear(30, 1e-9), DoubleNear(10, 1e-9)));
  EXPECT_DOUBLE_EQ(ledger.weight(2), 0.6) << "40 of 100 are spent";
}

TEST(CostLedger, CostsCountLessAsTheBudgetIsSpent) {
  CostLedger trials = ledger_of(3, {.max_trials = 10, .max_cost = {}, .last_step = 1});
  EXPECT_DOUBLE_EQ(trials.weight(0), 1);
  EXPECT_DOUBLE_EQ(trials.weight(4), 0.6);
  EXPECT_DOUBLE_EQ(trials.weight(40), 0);
  CostLedger both = ledger_of(3, {.max_trials = 10, .max_cost = 100, .last_step = 1});
  both.add_event(costing(0, 30));
  both.add_event(costing(fact(1, api::FactKind::kFailed, 0, std::nullopt), 10));
  EXPECT_DOUBLE_EQ(both.weight(2), 0.6);
  EXPECT_DOUBLE_EQ(both.weight(4), 0.2) << "two that run, which may cost 20 each";
  const CostLedger none = ledger_of(3, {.max_trials = 0, .max_cost = {}, .last_step = 1});
  EXPECT_DOUBLE_EQ(none.weight(1'000), 1) << "no limit is known";
}

TEST(CostLedger, ATrialIsWorthItsShareOfTheBudget) {
  CostLedger ledger = ledger_of(2, {.max_trials = 10, .max_cost = {}, .last_step = 1});
  ledger.add_event(costing(0, 30));
  ledger.add_event(costing(1, 10));
  EXPECT_DOUBLE_EQ(ledger.cost_per_trial(), 20) << "an average trial";
  EXPECT_DOUBLE_EQ(CostLedger({.max_trials = 10, .max_cost = 50, .last_step = 1}).cost_per_trial(),
                   5);
  EXPECT_DOUBLE_EQ(CostLedger({.max_trials = 0, .max_cost = 50, .last_step = 1}).cost_per_trial(),
                   0);
}

TEST(CostLedger, BearsWithCostsThatMakeNoSense) {
  CostLedger ledger = ledger_of(7, {.max_trials = 0, .max_cost = {}, .last_step = 1});
  const double inf = std::numeric_limits<double>::infinity();
  for (const double cost : {0.0, 2.0, 3.0, 1e300, -1.0, inf, std::nan("")}) {
    ledger.add_event(costing(static_cast<std::int64_t>(ledger.size()), cost));
  }
  EXPECT_THAT(costs_in(ledger), ElementsAre(DoubleNear(2, 1e-9), DoubleNear(2, 1e-9),
                                            DoubleNear(3, 1e-9), DoubleNear(3e4, 1e-6)));
}

// ---- The model of costs ------------------------------------------------------------------------

// Trials at random points of a space with numbers, choices and conditions.
struct Market {
  Space space = gp::testing::mixed_space();
  CostLedger ledger{CostBudget{}};
  std::vector<Point> points;

  Market(std::int64_t trials, const std::function<double(const Point&)>& cost) {
    Random random(7);
    for (std::int64_t i = 0; i < trials; ++i) {
      points.push_back(space.draw(random));
      ledger.add_trial(&points.back());
      ledger.add_event(costing(i, cost(points.back())));
    }
  }

  Eigen::VectorXd predicted(const std::vector<Point>& at) const {
    gp::CostModel model(space);
    model.update(ledger);
    gp::Inputs inputs(static_cast<gp::Index>(at.size()),
                      static_cast<gp::Index>(space.dimensions()));
    for (std::size_t i = 0; i < at.size(); ++i) inputs.set(static_cast<gp::Index>(i), space, at[i]);
    return model.log_costs(inputs);
  }
};

// A power law of the first number, halved outside one branch: spans two decades.
double power_law(const Point& point, const Space& space) {
  const double first = space.dimension(0).to_unit(point[0]).centre();
  return std::exp(4.6 * first) * (is_active(point.back()) ? 1 : 0.5);
}

TEST(CostModel, LearnsALawThatSpansDecades) {
  const Space space = gp::testing::mixed_space();
  const auto law = [&](const Point& point) { return power_law(point, space); };
  const Market market(40, law);
  Random random(8);
  std::vector<Point> fresh;
  for (int i = 0; i < 100; ++i) fresh.push_back(space.draw(random));
  const Eigen::VectorXd predicted = market.predicted(fresh);
  double squares = 0;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    squares += std::pow(predicted[static_cast<gp::Index>(i)] - std::log(law(fresh[i])), 2);
  }
  EXPECT_LT(std::sqrt(squares / 100), 0.25) << "in logarithms, of costs that differ by 5";
}

TEST(CostModel, CostsThatAreAllTheSameArePredictedEverywhere) {
  const Market market(10, [](const Point&) { return 7.0; });
  for (const double log_cost : market.predicted(market.points)) {
    EXPECT_NEAR(std::exp(log_cost), 7, 1e-9);
  }
}

TEST(CostModel, NeedsMoreThanTwoCosts) {
  Market market(2, [](const Point& point) { return 1 + point[0] * point[0]; });
  gp::CostModel model(market.space);
  model.update(market.ledger);
  EXPECT_FALSE(model.has_prediction());
}

TEST(ExpectedCost, SlopesMatchFiniteDifferences) {
  const Space space = square();
  gp::ExpectedCost expected_cost(
      space, CostBudget{.max_trials = 500'000, .max_cost = 1e6, .last_step = 1});
  Random random(9);
  for (std::int64_t i = 0; i < 20; ++i) {
    const Point point = space.draw(random);
    expected_cost.add_trial(&point);
    expected_cost.add_event(costing(i, std::exp(3 * point[0] - std::pow(point[1], 2))));
  }
  expected_cost.update(20);
  ASSERT_TRUE(expected_cost.counts());
  EXPECT_THAT(expected_cost.words(), HasSubstr("plus 2")) << "what a place is worth";
  gp::Inputs inputs(1, 2);
  inputs.active.setOnes();
  const auto at = [&](const Eigen::VectorXd& x) { return expected_cost.at(Point{x[0], x[1]}); };
  const Eigen::VectorXd x = Eigen::Vector2d(0.3, 0.6);
  const Eigen::VectorXd expected = gp::testing::differences(at, x);
  inputs.at.row(0) = x.transpose();
  Eigen::VectorXd slope;
  EXPECT_DOUBLE_EQ(expected_cost.at(inputs, 0, slope), at(x));
  EXPECT_LT((slope - expected).norm(), 1e-6);
  const double cost = std::exp(3 * 0.3 - std::pow(0.6, 2));
  EXPECT_NEAR(-slope[0], 3 * cost / (cost + 2), 0.2);
}

// ---- The saving --------------------------------------------------------------------------------

using Function = std::function<double(const Json&)>;

double branin(const Json& point) {
  const double x = number(point, "x");
  const double y = number(point, "y");
  const double pi = std::numbers::pi;
  return std::pow(y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6, 2) +
         10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

// The amount paid until a value below `target` is found; at most the cost of 60 average trials.
double paid_for(const Problem& problem, const Function& value, const Function& cost,
                double target) {
  const auto sampler = make_sampler(problem).value();
  History history;
  double paid = 0;
  while (paid < *problem.max_cost) {
    history.trials.push_back(sampler->suggest(history, 1).points.at(0));
    const Json& point = history.trials.back();
    const auto trial = static_cast<std::int64_t>(history.events.size());
    history.events.push_back(costing(result(trial, value(point)), cost(point)));
    paid += cost(point);
    if (value(point) < target) break;
  }
  return paid;
}

// The geometric mean over seeds of the saving by cost-awareness: 2 means half the cost.
double saving(const std::string& algorithm, const std::vector<api::Parameter>& parameters,
              const Function& value, const Function& cost, double mean_cost, double target) {
  constexpr std::int64_t kSeeds = 8;
  double log_saving = 0;
  for (std::int64_t seed = 1; seed <= kSeeds; ++seed) {
    Problem plain = problem_of(parameters, algorithm, seed);
    plain.max_cost = 60 * mean_cost;
    Problem counting = plain;
    counting.algorithm.cost_aware = true;
    log_saving +=
        std::log(paid_for(plain, value, cost, target) / paid_for(counting, value, cost, target));
  }
  return std::exp(log_saving / static_cast<double>(kSeeds));
}

TEST(CostAware, GpPaysLessIfCheapPlacesAreAsGood) {
  if (kSanitized) GTEST_SKIP() << "a measurement";
  // One of Branin's three minima costs eleven times as much as the two others.
  const auto cost = [](const Json& point) { return std::exp(4 * number(point, "y") / 15); };
  EXPECT_GT(saving("gp", {real("x", -5, 10), real("y", 0, 15)}, branin, cost, 13.4, 0.45), 1.5);
}

TEST(CostAware, GpPaysNoMoreIfTheBestPlacesCostMost) {
  if (kSanitized) GTEST_SKIP() << "a measurement";
  const auto cost = [](const Json& point) { return std::exp(4 * number(point, "size")); };
  const auto value = [](const Json& point) {
    return std::pow(number(point, "size") - 0.8, 2) + std::pow(number(point, "x") - 0.3, 2) +
           std::pow(number(point, "y") - 0.6, 2);
  };
  EXPECT_GT(saving("gp", {real("size", 0, 1), real("x", 0, 1), real("y", 0, 1)}, value, cost, 13.4,
                   0.002),
            0.95);
}

TEST(CostAware, ChangesNothingIfAllTrialsCostTheSame) {
  Problem problem = problem_of({real("x", -5, 10), real("y", 0, 15)}, "gp", 3);
  problem.max_trials = 30;
  Problem counting = problem;
  counting.algorithm.cost_aware = true;
  const auto plain = make_sampler(problem).value();
  const auto aware = make_sampler(counting).value();
  History history;
  for (std::int64_t trial = 0; trial < 30; ++trial) {
    const Json point = plain->suggest(history, 1).points.at(0);
    ASSERT_EQ(aware->suggest(history, 1).points.at(0), point) << trial;
    history.trials.push_back(point);
    history.events.push_back(costing(result(trial, branin(point)), 5));
  }
}

TEST(CostAware, ExplainsTheExpectedCostAndItsWeight) {
  for (const std::string name : {"gp", "ehvi"}) {
    Problem problem = problem_of({real("x", -5, 10), real("y", 0, 15)}, name + "_cost", 3);
    problem.max_trials = 40;
    const auto sampler = make_sampler(problem).value();
    EXPECT_THAT(sampler->description(), HasSubstr("costs count"));
    History history;
    for (std::int64_t trial = 0; trial < 20; ++trial) {
      history.trials.push_back(sampler->suggest(history, 1).points.at(0));
      const Json& point = history.trials.back();
      history.events.push_back(
          costing(result(trial, branin(point)), std::exp(number(point, "y") / 5)));
    }
    const auto said = sampler->explain(history, *parse_json(R"({"x":1.0,"y":10.0})"));
    ASSERT_TRUE(said && said->cost);
    EXPECT_NEAR(*said->cost, std::exp(2), 1);
    EXPECT_THAT(said->words, HasSubstr("0.5 times the logarithm of the predicted cost"));
  }
}

TEST(CostAware, AutoPassesItOn) {
  Problem problem = problem_of({real("x", 0, 1)}, "auto_cost");
  EXPECT_THAT(make_sampler(problem).value()->description(), HasSubstr("costs count"));
  problem.parameters = {integer("n", 1, 5)};
  problem.max_trials = 10;
  EXPECT_THAT(make_sampler(problem).value()->description(),
              HasSubstr("what trials cost does not count there"));
}

}  // namespace
}  // namespace fettle::search
