// NSGA-II on problems with known fronts, and the rules for parents.
#include <gtest/gtest.h>

#include <cmath>

#include "search/search.h"
#include "search/testing/fronts.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

TEST(Nsga2, NearsTheFrontOfZdt1) {
  EXPECT_GT(median_share("nsga2", zdt1(), 400, 1), 0.8);
  EXPECT_GT(median_share("nsga2", zdt1(), 400, 16), 0.7);
  EXPECT_LT(median_share("random", zdt1(), 400, 1), 0.2);
}

TEST(Nsga2, NearsTheFrontOfDtlz2) {
  const double share = median_share("nsga2", dtlz2(), 400, 1);
  EXPECT_GT(share, 0.75);
  EXPECT_GT(share, median_share("random", dtlz2(), 400, 1) + 0.1);
}

TEST(Nsga2, InfeasibleTrialsNeverBecomeParents) {
  // The infeasible region would be the best by far.
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
