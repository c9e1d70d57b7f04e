// NSGA-II on problems whose fronts are known, and what may become a parent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "search/pareto.h"
#include "search/search.h"
#include "search/testing.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

using Objectives = std::function<std::vector<std::optional<double>>(const Json&)>;

constexpr int kDimensions = 6;

Problem problem_with(std::vector<api::Parameter> parameters, const std::string& algorithm,
                     std::size_t objectives) {
  Problem out = problem_of(std::move(parameters), algorithm);
  while (out.objectives.size() < objectives) {
    out.objectives.push_back({"f" + std::to_string(out.objectives.size()),
                              api::Direction::kMinimize,
                              {},
                              api::Take::kLast,
                              {}});
  }
  return out;
}

std::vector<api::Parameter> unit_cube() {
  std::vector<api::Parameter> out;
  for (int i = 0; i < kDimensions; ++i) out.push_back(real("x" + std::to_string(i), 0, 1));
  return out;
}

double x_of(const Json& point, int i) { return point.find("x" + std::to_string(i))->as_double(); }

std::vector<std::optional<double>> zdt1(const Json& point) {
  double g = 1;
  for (int i = 1; i < kDimensions; ++i) g += 9 * x_of(point, i) / (kDimensions - 1);
  const double f1 = x_of(point, 0);
  return {f1, g * (1 - std::sqrt(f1 / g))};
}

std::vector<std::optional<double>> dtlz2(const Json& point) {
  double g = 1;
  for (int i = 2; i < kDimensions; ++i) g += std::pow(x_of(point, i) - 0.5, 2);
  const double a = x_of(point, 0) * std::acos(0);
  const double b = x_of(point, 1) * std::acos(0);
  return {g * std::cos(a) * std::cos(b), g * std::cos(a) * std::sin(b), g * std::sin(a)};
}

History run(const Problem& problem, const Objectives& objectives, int trials, int parallel) {
  const auto sampler = std::move(make_sampler(problem)).value();
  History history;
  for (std::int64_t i = 0; i < trials; ++i) {
    history.trials.push_back(sampler->suggest(history, 1).points.at(0));
    const std::int64_t ended = i - parallel + 1;
    if (ended < 0) continue;
    Event event = result(ended, 0.0);
    event.fact.values = objectives(history.trials[static_cast<std::size_t>(ended)]);
    event.fact.infeasible = std::any_of(event.fact.values.begin(), event.fact.values.end(),
                                        [](const auto& value) { return !value.has_value(); });
    history.events.push_back(event);
  }
  return history;
}

double covered(const History& history, const Losses& reference) {
  std::vector<Losses> points;
  for (const Event& event : history.events) {
    if (event.fact.infeasible) continue;
    Losses losses;
    for (const auto& value : event.fact.values) losses.push_back(*value);
    points.push_back(losses);
  }
  return hypervolume(points, reference).value();
}

// Shares of the best volume there is, the median of five runs.
double median_share(const std::string& algorithm, const Objectives& objectives,
                    const Losses& reference, double best, int parallel) {
  std::vector<double> shares;
  for (std::int64_t seed = 0; seed < 5; ++seed) {
    Problem problem = problem_with(unit_cube(), algorithm, reference.size());
    problem.algorithm.seed = seed;
    shares.push_back(covered(run(problem, objectives, 400, parallel), reference) / best);
  }
  std::sort(shares.begin(), shares.end());
  return shares[2];
}

TEST(Nsga2, NearsTheFrontOfZdt1) {
  const double best = 1.21 - 1.0 / 3;
  EXPECT_GT(median_share("nsga2", zdt1, {1.1, 1.1}, best, 1), 0.8);
  EXPECT_GT(median_share("nsga2", zdt1, {1.1, 1.1}, best, 16), 0.7);
  EXPECT_LT(median_share("random", zdt1, {1.1, 1.1}, best, 1), 0.2);
}

TEST(Nsga2, NearsTheFrontOfDtlz2) {
  const double best = 1.331 - std::acos(0) / 3;  // an eighth of the unit ball is pi / 6
  const double share = median_share("nsga2", dtlz2, {1.1, 1.1, 1.1}, best, 1);
  EXPECT_GT(share, 0.75);
  EXPECT_GT(share, median_share("random", dtlz2, {1.1, 1.1, 1.1}, best, 1) + 0.1);
}

TEST(Nsga2, InfeasibleTrialsNeverBecomeParents) {
  // What is infeasible would be best by far.
  const Objectives objectives = [](const Json& point) -> std::vector<std::optional<double>> {
    if (x_of(point, 0) < 0.5) return {std::nullopt, std::nullopt};
    return {x_of(point, 0), 1 - x_of(point, 0) + x_of(point, 1)};
  };
  const History history = run(problem_with(unit_cube(), "nsga2", 2), objectives, 300, 4);
  int late_infeasible = 0;
  for (std::size_t i = 200; i < history.events.size(); ++i) {
    late_infeasible += history.events[i].fact.infeasible;
  }
  EXPECT_LT(late_infeasible, 20);
}

TEST(Nsga2, WithNothingFeasibleItGoesOnDrawing) {
  const Objectives nothing = [](const Json&) -> std::vector<std::optional<double>> {
    return {std::nullopt, std::nullopt};
  };
  const History history = run(problem_with(unit_cube(), "nsga2", 2), nothing, 200, 1);
  int low = 0;
  for (const Json& point : history.trials) low += x_of(point, 3) < 0.5;
  EXPECT_NEAR(low, 100, 30);
}

TEST(Nsga2, MixesBranchesAndChoices) {
  const std::vector<api::Parameter> parameters = {
      choice("o", {"sgd", "adam"}), only_if(real("m", 0, 1), "o", {"sgd"}),
      only_if(integer("k", 1, 9), "o", {"adam"}), real("x0", 0, 1)};
  const Objectives objectives = [](const Json& point) -> std::vector<std::optional<double>> {
    const Json* momentum = point.find("m");
    const double extra = momentum != nullptr ? std::abs(momentum->as_double() - 0.9) : 0.5;
    return {x_of(point, 0) + extra, 1 - x_of(point, 0) + extra};
  };
  const Problem problem = problem_with(parameters, "nsga2", 2);
  const History history = run(problem, objectives, 200, 2);
  int good = 0;
  for (std::size_t i = 100; i < history.trials.size(); ++i) {
    ASSERT_EQ(complaint(parameters, history.trials[i]), "");
    const Json* momentum = history.trials[i].find("m");
    good += momentum != nullptr && std::abs(momentum->as_double() - 0.9) < 0.1;
  }
  EXPECT_GT(good, 70);
}

}  // namespace
}  // namespace fettle::search
