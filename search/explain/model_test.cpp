// The model on parameters of every kind, stopped trials and odd values.
#include "search/explain/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>

#include "search/testing/problems.h"

namespace fettle::explain {
namespace {

using search::History;
using search::Problem;
using search::testing::boolean;
using search::testing::choice;
using search::testing::fact;
using search::testing::integer;
using search::testing::only_if;
using search::testing::problem_of;
using search::testing::real;
using search::testing::result;
using search::testing::stepped;

using Function = std::function<double(const Json&)>;

double number(const Json& point, const char* name) { return point.find(name)->as_double(); }

History history_of(const Problem& problem, const Function& function, std::int64_t count) {
  const auto space = search::Space::make(problem.parameters);
  History history;
  for (std::int64_t i = 0; i < count; ++i) {
    Random random(3, static_cast<std::uint64_t>(i));
    history.trials.push_back(space->write(space->draw(random)));
    history.events.push_back(result(i, function(history.trials.back())));
  }
  return history;
}

Model model_of(const std::vector<api::Parameter>& parameters, const Function& function,
               std::int64_t count = 400) {
  const Problem problem = problem_of(parameters, "random");
  auto model = Model::fit(problem, history_of(problem, function, count), 0);
  return *std::move(model);
}

TEST(Model, SeesALogarithmicScale) {
  const Model model = model_of({real("rate", 1e-6, 1, api::Scale::kLog), real("other", 0, 1)},
                               [](const Json& point) { return std::log10(number(point, "rate")); });
  EXPECT_GT(model.importance().columns[0].main, 0.95);
  const std::vector<DependencePoint> curve = model.dependence(0);
  EXPECT_NEAR(curve.front().value.as_double(), 1e-6, 1e-12);
  EXPECT_NEAR(curve[curve.size() / 2].value.as_double(), 1e-3, 1e-6);
  EXPECT_NEAR(curve[curve.size() / 2].mean, -3, 0.2);
}

TEST(Model, DependenceFollowsAnAdditiveFunction) {
  const Model model = model_of({real("x", 0, 1), real("y", 0, 1)}, [](const Json& point) {
    return 3 * number(point, "x") + number(point, "y");
  });
  for (const DependencePoint& point : model.dependence(0)) {
    const double x = point.value.as_double();
    if (x < 0.05 || x > 0.95) continue;  // a forest is flat beyond its outermost samples
    EXPECT_NEAR(point.mean, 3 * x + 0.5, 0.25) << x;
    EXPECT_GT(point.deviation, 0);
    EXPECT_LT(point.deviation, 0.3);
  }
}

TEST(Model, TellsChoicesApart) {
  const Model model =
      model_of({choice("kind", {"a", "b", "c", "d"}), real("x", 0, 1), boolean("flag")},
               [](const Json& point) { return *point.find("kind") == Json("c") ? 1.0 : 0.0; });
  const Shares shares = model.importance();
  EXPECT_GT(shares.columns[0].main, 0.98);
  EXPECT_LT(shares.columns[1].total, 0.01);
  EXPECT_LT(shares.columns[2].total, 0.01);
  const std::vector<DependencePoint> values = model.dependence(0);
  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ(values[2].value, Json("c"));
  EXPECT_NEAR(values[2].mean, 1, 0.02);
  EXPECT_NEAR(values[0].mean, 0, 0.02);
}

TEST(Model, TakesStepsAndIntegersAsTheyAre) {
  const Model model = model_of({integer("layers", 1, 5), stepped("drop", 0, 0.5, 0.1)},
                               [](const Json& point) { return number(point, "layers"); });
  const std::vector<DependencePoint> layers = model.dependence(0);
  ASSERT_EQ(layers.size(), 5U);
  EXPECT_EQ(layers[4].value, Json(5));
  EXPECT_NEAR(layers[4].mean, 5, 0.05);
  EXPECT_EQ(model.dependence(1).size(), 6U);
}

// f = momentum under sgd, its mean otherwise. Over the whole cube: optimizer alone explains
// nothing, momentum alone half, the two together the other half.
TEST(Model, AParameterThatIsNotThereCannotMatter) {
  const Model model = model_of(
      {choice("optimizer", {"sgd", "adam"}), only_if(real("momentum", 0, 1), "optimizer", {"sgd"})},
      [](const Json& point) {
        return *point.find("optimizer") == Json("sgd") ? number(point, "momentum") : 0.5;
      },
      800);
  const Shares shares = model.importance();
  EXPECT_NEAR(shares.columns[0].main, 0, 0.05);
  EXPECT_NEAR(shares.columns[1].main, 0.5, 0.1);
  EXPECT_NEAR(shares.columns[0].total, 0.5, 0.1);
  EXPECT_GT(shares.columns[1].total, 0.9);
  // The dependence covers the trials that have the parameter.
  const std::vector<DependencePoint> curve = model.dependence(1);
  EXPECT_NEAR(curve[curve.size() / 4].mean, 0.25, 0.08);
  EXPECT_NEAR(curve[curve.size() * 3 / 4].mean, 0.75, 0.08);
}

TEST(Model, ASurfaceShowsHowTwoParametersActTogether) {
  const Model model = model_of(
      {real("x", 0, 1), choice("sign", {"plus", "minus"}), real("idle", 0, 1)},
      [](const Json& point) {
        return (*point.find("sign") == Json("plus") ? 1 : -1) * number(point, "x");
      },
      800);
  const auto surface = model.dependence(0, 1);
  ASSERT_TRUE(surface);
  ASSERT_EQ(surface->second, (std::vector<Json>{"plus", "minus"}));
  ASSERT_EQ(surface->means.size(), 2 * surface->first.size());
  for (std::size_t i = 2; i + 2 < surface->first.size(); ++i) {
    const double x = surface->first[i].as_double();
    EXPECT_NEAR(surface->means[2 * i], x, 0.15) << x;
    EXPECT_NEAR(surface->means[2 * i + 1], -x, 0.15) << x;
    EXPECT_LT(surface->deviations[2 * i], 0.3);
  }
}

TEST(Model, AParameterAndItsConditionHaveNoSurface) {
  const Model model = model_of(
      {choice("o", {"sgd", "adam"}), only_if(real("m", 0, 1), "o", {"sgd"}),
       only_if(real("beta", 0, 1), "o", {"adam"}), only_if(real("nesterov", 0, 1), "o", {"sgd"})},
      [](const Json& point) { return point.find("m") != nullptr ? number(point, "m") : 0.5; });
  EXPECT_FALSE(model.dependence(0, 1));
  EXPECT_FALSE(model.dependence(1, 2));  // never together
  EXPECT_TRUE(model.dependence(1, 3));
}

TEST(Model, PredictsAndRanksAPoint) {
  const Model model =
      model_of({real("x", 0, 1)}, [](const Json& point) { return number(point, "x"); });
  const auto high = model.predict(Json::object({{"x", 0.9}}));
  ASSERT_TRUE(high.has_value());
  EXPECT_NEAR(high->mean, 0.9, 0.03);
  EXPECT_NEAR(model.share_below(high->mean), 0.9, 0.05);
  EXPECT_FALSE(model.predict(Json::object({{"y", 0.9}})).has_value());
}

TEST(Model, RanksThousandsOfPointsAtOnce) {
  const Model model = model_of({real("x", 0, 1), real("y", 0, 1), real("z", 0, 1)},
                               [](const Json& point) { return number(point, "x"); });
  const auto began = std::chrono::steady_clock::now();
  double last = 0;
  for (int i = 0; i < 3'000; ++i) {
    const Json point = Json::object({{"x", i / 3'000.0}, {"y", 0.5}, {"z", 0.5}});
    last = model.share_below(model.predict(point)->mean);
  }
  EXPECT_GT(last, 0.9);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_LT(took.count(), 10) << "random points are asked for again each time";
}

// If nothing is known to matter, a point is as good as any other.
TEST(Model, HalfOfThePointsAreBelowAmongEquals) {
  const Model model = model_of({real("x", 0, 1)}, [](const Json&) { return 7.0; });
  EXPECT_EQ(model.share_below(7), 0.5);
  EXPECT_EQ(model.share_below(8), 1);
}

// Every other trial was stopped at step 1, where values are 100 higher: they count as the values
// they would have reached, not as worse.
TEST(Model, LooksAtTheLastStepOnly) {
  Problem problem = problem_of({real("x", 0, 1)}, "random");
  problem.resource.max = 9;
  History history;
  for (std::int64_t i = 0; i < 200; ++i) {
    const double x = Random(9, static_cast<std::uint64_t>(i)).uniform();
    history.trials.push_back(Json::object({{"x", x}}));
    history.events.push_back(fact(i, api::FactKind::kRung, 1, 100 + x));
    const bool stopped = i % 2 == 0;
    history.events.push_back(stopped ? fact(i, api::FactKind::kStopped, 1, 100 + x)
                                     : fact(i, api::FactKind::kResult, 9, x));
  }
  const auto model = Model::fit(problem, history, 0);
  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(model->predict(Json::object({{"x", 0.5}}))->mean, 0.5, 3);
}

TEST(Model, SaysHowManyTrialsItTakes) {
  const Problem problem = problem_of({real("x", 0, 1)}, "random");
  const auto model = Model::fit(problem,
                                history_of(
                                    problem, [](const Json&) { return 1.0; }, 3),
                                0);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, testing::HasSubstr("3 trials have a value"));
}

TEST(Model, PassesOverTrialsWithoutAValueAndOfOtherSpaces) {
  const Problem problem = problem_of({real("x", 0, 1)}, "random");
  History history = history_of(
      problem, [](const Json& p) { return number(p, "x"); }, 20);
  history.trials.push_back(Json::object({{"z", 1}}));
  history.events.push_back(result(20, 1.0));
  history.trials.push_back(Json::object({{"x", 0.5}}));
  history.events.push_back(result(21, std::nullopt));
  const auto model = Model::fit(problem, history, 0);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->trials(), 20U);
}

TEST(Model, AnOutlierDoesNotHideTheRest) {
  const Model model = model_of({real("x", 0, 1), real("y", 0, 1)}, [](const Json& point) {
    return number(point, "y") > 0.98 ? 1e12 : number(point, "x");
  });
  EXPECT_GT(model.clipped(), 0U);
  EXPECT_NEAR(model.predict(Json::object({{"x", 0.5}, {"y", 0.5}}))->mean, 0.5, 0.1);
}

TEST(Model, StandsEveryDouble) {
  const Model model = model_of({real("x", 0, 1)}, [](const Json& point) {
    return number(point, "x") > 0.5 ? 1.7e308 : -1.7e308;
  });
  const Shares shares = model.importance();
  EXPECT_GT(shares.columns[0].total, 0.95);
  EXPECT_TRUE(std::isfinite(model.predict(Json::object({{"x", 0.9}}))->mean));
  for (const DependencePoint& point : model.dependence(0)) EXPECT_TRUE(std::isfinite(point.mean));
}

TEST(Model, OfEqualValuesFindsNoImportance) {
  const Model model =
      model_of({real("x", 0, 1), choice("c", {"a", "b"})}, [](const Json&) { return 2.0; });
  EXPECT_EQ(model.importance().columns[0].total, 0);
  EXPECT_EQ(model.dependence(0).front().mean, 2);
}

TEST(Model, TakesAParameterOfOneValue) {
  const Model model = model_of({real("x", 0, 1), real("fixed", 3, 3), choice("only", {"a"})},
                               [](const Json& point) { return number(point, "x"); });
  EXPECT_GT(model.importance().columns[0].total, 0.95);
  EXPECT_NEAR(model.dependence(1).front().mean, 0.5, 0.1);
  EXPECT_EQ(model.dependence(2).size(), 1U);
}

// Random spaces of the samplers' tests: every answer is finite and sums to its parts.
TEST(Model, StandsRandomSpaces) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    Random random(11, i);
    const auto parameters = search::testing::random_space(random, 8, i % 2 == 0);
    Random noise(12, i);
    const Model model = model_of(
        parameters, [&noise](const Json&) { return noise.uniform(); }, 30);
    const Shares shares = model.importance();
    double mains = 0;
    for (const ColumnShare& share : shares.columns) {
      EXPECT_GE(share.total, share.main - 1e-9);
      mains += share.main;
    }
    EXPECT_LE(mains, 1 + 1e-9);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      for (const DependencePoint& point : model.dependence(j)) {
        EXPECT_GE(point.mean, 0) << j;
        EXPECT_LE(point.mean, 1) << j;
      }
    }
  }
}

}  // namespace
}  // namespace fettle::explain
