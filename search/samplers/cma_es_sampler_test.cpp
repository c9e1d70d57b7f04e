// Searching with CMA-ES: convergence with one and with many trials at once, starts, restarts and
// lost results. Its steps are checked in cma_es_distribution_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "search/search.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

using Loss = std::function<std::optional<double>(const Json&)>;

double number(const Json& point, const std::string& name) { return point.find(name)->as_double(); }

std::unique_ptr<Sampler> sampler_of(const Problem& problem) {
  return std::move(make_sampler(problem)).value();
}

// Runs `trials`, `parallel` of them at once, and returns the history. The next trial to end is
// drawn; one in `lost` never ends (0 = all end).
History run(const Problem& problem, const Loss& loss, int trials, int parallel, int lost = 0) {
  const auto sampler = sampler_of(problem);
  Random random(7);
  History history;
  std::vector<std::int64_t> running;
  while (static_cast<int>(history.trials.size()) < trials) {
    const Suggestion next = sampler->suggest(history, 1);
    if (next.points.empty()) break;
    running.push_back(static_cast<std::int64_t>(history.trials.size()));
    history.trials.push_back(next.points[0]);
    if (static_cast<int>(running.size()) < parallel) continue;
    const std::size_t at = random.below(running.size());
    const std::int64_t trial = running[at];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
    if (lost > 0 && random.below(static_cast<std::uint64_t>(lost)) == 0) continue;
    const std::optional<double> value = loss(history.trials[static_cast<std::size_t>(trial)]);
    history.events.push_back(result(trial, value));
  }
  return history;
}

double best_of(const History& history) {
  double best = std::numeric_limits<double>::infinity();
  for (const Event& event : history.events) {
    if (!event.fact.infeasible) best = std::min(best, *event.fact.values[0]);
  }
  return best;
}

// The median of five runs, so that a test does not depend on the luck of one.
double median_best(Problem problem, const Loss& loss, int trials, int parallel, int lost = 0) {
  std::vector<double> best;
  for (problem.algorithm.seed = 0; problem.algorithm.seed < 5; ++problem.algorithm.seed) {
    best.push_back(best_of(run(problem, loss, trials, parallel, lost)));
  }
  std::sort(best.begin(), best.end());
  return best[2];
}

// An elongated bowl off the centre, rotated against the axes.
std::optional<double> ellipsoid(const Json& point) {
  const double a = number(point, "a") - 0.7;
  const double b = number(point, "b") - 0.2;
  const double c = number(point, "c") - 0.4;
  return std::pow(a + b, 2) + 100 * std::pow(a - b, 2) + 10 * std::pow(c - a, 2);
}

Problem ellipsoid_problem(const std::string& algorithm) {
  return problem_of({real("a", 0, 1), real("b", 0, 1), real("c", 0, 1)}, algorithm);
}

TEST(Cmaes, ConvergesWhereRandomSearchDoesNot) {
  EXPECT_LT(median_best(ellipsoid_problem("cmaes"), ellipsoid, 400, 1), 1e-7);
  EXPECT_GT(median_best(ellipsoid_problem("random"), ellipsoid, 400, 1), 1e-3);
}

TEST(Cmaes, ConvergesWithManyTrialsAtOnce) {
  EXPECT_LT(median_best(ellipsoid_problem("cmaes"), ellipsoid, 500, 8), 1e-4);
  EXPECT_LT(median_best(ellipsoid_problem("cmaes"), ellipsoid, 1500, 60), 1e-2);
}

TEST(Cmaes, LostResultsHoldNothingUp) {
  EXPECT_LT(median_best(ellipsoid_problem("cmaes"), ellipsoid, 600, 8, 3), 1e-4);
}

TEST(Cmaes, FindsTheBestIntegersBesideContinuousParameters) {
  const Loss loss = [](const Json& point) {
    return std::pow(number(point, "x") - 0.3, 2) + std::pow(number(point, "n") - 3, 2) +
           std::pow(number(point, "m") - 17, 2) / 10;
  };
  const Problem problem =
      problem_of({real("x", 0, 1), integer("n", 1, 8), integer("m", 1, 64)}, "cmaes");
  EXPECT_LT(median_best(problem, loss, 300, 1), 1e-3);
}

TEST(Cmaes, FindsTheBestChoiceAndItsParameters) {
  const Loss loss = [](const Json& point) -> std::optional<double> {
    const Json* momentum = point.find("momentum");
    const double x = std::pow(number(point, "x") - 0.6, 2);
    if (momentum == nullptr) return 1 + x;
    return x + std::pow(momentum->as_double() - 0.9, 2);
  };
  const Problem problem = problem_of({choice("o", {"a", "b", "c", "d"}), real("x", 0, 1),
                                      only_if(real("momentum", 0, 1), "o", {"c"})},
                                     "cmaes");
  EXPECT_LT(median_best(problem, loss, 300, 1), 1e-3);
}

TEST(Cmaes, InfeasibleRegionsAreLeft) {
  // The optimum lies on the edge of the feasible region, at a + b = 1.2.
  const Loss loss = [](const Json& point) -> std::optional<double> {
    const double a = number(point, "a");
    const double b = number(point, "b");
    if (a + b > 1.2) return std::nullopt;
    return std::pow(a - 1, 2) + std::pow(b - 1, 2);
  };
  const Problem problem = problem_of({real("a", 0, 1), real("b", 0, 1)}, "cmaes");
  EXPECT_LT(median_best(problem, loss, 200, 1), 0.32 + 0.02);
}

// The distance of the next suggested point from the optimum, after the trials in `known`.
double first_distance(const History& known, const Problem& problem) {
  const Json point = sampler_of(problem)->suggest(known, 1).points.at(0);
  return std::hypot(number(point, "a") - 0.9, number(point, "b") - 0.1);
}

History known_trials(int count) {
  Random random(3);
  History known;
  for (int trial = 0; trial < count; ++trial) {
    const double a = random.uniform();
    const double b = random.uniform();
    known.trials.push_back(Json::object({{"a", a}, {"b", b}}));
    known.events.push_back(result(trial, std::hypot(a - 0.9, b - 0.1)));
  }
  return known;
}

TEST(Cmaes, StartsWhereEarlierTrialsWereBest) {
  Problem problem = problem_of({real("a", 0, 1), real("b", 0, 1)}, "cmaes");
  double cold = 0;
  double few = 0;
  double many = 0;
  History one;
  one.trials = {*parse_json(R"({"a":0.9,"b":0.1})")};
  one.events = {result(0, 1.0)};
  for (problem.algorithm.seed = 0; problem.algorithm.seed < 20; ++problem.algorithm.seed) {
    cold += first_distance({}, problem) / 20;
    few += first_distance(one, problem) / 20;
    many += first_distance(known_trials(200), problem) / 20;
  }
  EXPECT_LT(few, 0.6 * cold);
  EXPECT_LT(many, 0.4 * cold);
}

TEST(Cmaes, StartsAnewOnceItHasConverged) {
  const Problem problem = problem_of({real("a", 0, 1), real("b", 0, 1)}, "cmaes");
  const Loss loss = [](const Json& point) {
    return std::pow(number(point, "a") - 0.5, 2) + std::pow(number(point, "b") - 0.5, 2);
  };
  const History history = run(problem, loss, 1200, 1);
  EXPECT_LT(best_of(history), 1e-12);
  // After a long time near the optimum, trials are far from it again.
  std::size_t near = 0;
  std::size_t again = 0;
  for (std::size_t i = 0; i < history.trials.size(); ++i) {
    const double distance = std::sqrt(*loss(history.trials[i]));
    if (near < 50 && distance < 1e-3) ++near;
    if (near == 50 && distance > 0.2) ++again;
  }
  EXPECT_EQ(near, 50U);
  EXPECT_GT(again, 5U);
}

TEST(Cmaes, PlateausAndNothingFeasibleEndInFurtherStarts) {
  Problem problem =
      problem_of({real("a", 0, 1), integer("n", 1, 5), choice("c", {"x", "y"})}, "cmaes");
  problem.algorithm.population_size = 4;
  for (const std::optional<double>& value :
       {std::optional<double>(1.0), std::optional<double>(), std::optional<double>(-1e300)}) {
    const Loss loss = [&](const Json&) { return value; };
    const History history = run(problem, loss, 600, 3);
    std::vector<double> late;
    for (std::size_t i = 300; i < history.trials.size(); ++i) {
      ASSERT_EQ(complaint(problem.parameters, history.trials[i]), "");
      late.push_back(number(history.trials[i], "a"));
    }
    const auto [low, high] = std::minmax_element(late.begin(), late.end());
    EXPECT_GT(*high - *low, 0.5);
  }
}

TEST(Cmaes, RefusesSpacesItCannotSearch) {
  std::vector<api::Parameter> many;
  for (int i = 0; i < 1001; ++i) many.push_back(real("p" + std::to_string(i), 0, 1));
  const auto refused = make_sampler(problem_of(many, "cmaes"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              ::testing::HasSubstr("at most 1000 numeric parameters; found 1001"));
}

}  // namespace
}  // namespace fettle::search
