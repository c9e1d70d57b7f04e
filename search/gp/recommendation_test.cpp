#include "search/gp/recommendation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "search/testing/problems.h"

namespace fettle::search::gp {
namespace {

using search::testing::fact;
using search::testing::problem_of;
using search::testing::real;
using search::testing::result;

Problem square() { return problem_of({real("x", 0, 1), real("y", 0, 1)}, "gp"); }

double at(const Json& point, const char* name) { return point.find(name)->as_double(); }

double bowl(const Json& point) {
  return std::pow(at(point, "x") - 0.3, 2) + std::pow(at(point, "y") - 0.6, 2);
}

// `count` trials at drawn places, with results from `told`.
History drawn(std::int64_t count, std::uint64_t seed,
              const std::function<std::optional<double>(const Json&)>& told) {
  Random random(seed);
  History out;
  for (std::int64_t trial = 0; trial < count; ++trial) {
    Json point = Json::object({{"x", random.uniform()}});
    point.set("y", random.uniform());
    out.events.push_back(result(trial, told(point)));
    out.trials.push_back(std::move(point));
  }
  return out;
}

History noisy_bowl(std::int64_t count, std::uint64_t seed, double noise) {
  Random random(seed + 1000);
  return drawn(count, seed,
               [&](const Json& point) { return bowl(point) + noise * random.normal(); });
}

const Json& place(const History& history, std::int64_t trial) {
  return history.trials[static_cast<std::size_t>(trial)];
}

// Sixty results with noise of a third of the differences between random places: over thirty
// histories the recommended trial is better, and its expected value nearer to the truth than its
// measured one.
TEST(Recommendation, PrefersAGoodTrialToALuckyTrial) {
  double taken = 0;
  double looks = 0;
  double error_expected = 0;
  double error_measured = 0;
  int others = 0;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const History history = noisy_bowl(60, seed, 0.08);
    const auto recommended = recommend(square(), history);
    if (!recommended) continue;
    ++found;
    others += recommended->trial != recommended->looks_best ? 1 : 0;
    const double truth = bowl(place(history, recommended->trial));
    taken += truth;
    looks += bowl(place(history, recommended->looks_best));
    error_expected += std::abs(recommended->expected - truth);
    error_measured += std::abs(recommended->measured - truth);
  }
  ASSERT_GE(found, 20) << "the noise is found in most of them";
  EXPECT_GE(others, 10);
  EXPECT_LT(taken, 0.7 * looks);
  EXPECT_LT(error_expected, 0.7 * error_measured);
}

TEST(Recommendation, NoiseMatchesTheResults) {
  double sum = 0;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto recommended = recommend(square(), noisy_bowl(100, seed, 0.08));
    if (!recommended) continue;
    sum += recommended->noise;
    ++found;
  }
  ASSERT_GE(found, 7);
  EXPECT_GT(sum / found, 0.08 / 3);
  EXPECT_LT(sum / found, 0.08 * 2);
}

TEST(Recommendation, MaximisedObjectivesAreTurned) {
  Problem problem = square();
  problem.objectives[0].direction = api::Direction::kMaximize;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const History low = noisy_bowl(60, seed, 0.08);
    History high = low;
    for (Event& event : high.events) event.fact.values[0] = -*event.fact.values[0];
    const auto a = recommend(square(), low);
    const auto b = recommend(problem, high);
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) continue;
    EXPECT_EQ(a->trial, b->trial);
    EXPECT_DOUBLE_EQ(a->expected, -b->expected);
  }
}

TEST(Recommendation, OnlyFeasibleResultsAreTaken) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    History history = noisy_bowl(60, seed, 0.08);
    const auto before = recommend(square(), history);
    if (!before) continue;
    Event stopped = fact(before->trial, api::FactKind::kStopped, 1, -5.0);
    history.events[static_cast<std::size_t>(before->trial)] = stopped;
    const auto after = recommend(square(), history);
    EXPECT_FALSE(after && after->trial == before->trial);
  }
}

TEST(Recommendation, IsSilentWhereNoiseDoesNotShow) {
  const auto exact = [](const Json& point) { return bowl(point); };
  EXPECT_FALSE(recommend(square(), drawn(60, 1, exact))) << "a smooth function";
  EXPECT_FALSE(recommend(square(), noisy_bowl(kLeastResults - 1, 1, 1))) << "too few";
  EXPECT_FALSE(recommend(square(), drawn(20, 1, [](const Json&) { return 1.0; }))) << "all equal";
  EXPECT_FALSE(recommend(square(), drawn(20, 1, [](const Json&) { return std::nullopt; })))
      << "all infeasible";
  EXPECT_FALSE(recommend(square(), History{})) << "no trial";
  Problem two = square();
  two.objectives.emplace_back(two.objectives[0]).metric = "cost";
  EXPECT_FALSE(recommend(two, noisy_bowl(60, 1, 0.08))) << "two objectives";
  Problem population = square();
  population.algorithm.name = api::AlgorithmKind::kPbt;
  EXPECT_FALSE(recommend(population, noisy_bowl(60, 1, 0.08))) << "members take over weights";
}

TEST(Recommendation, HugeValuesDoNoHarm) {
  Random random(3);
  const History history = drawn(40, 2, [&](const Json&) {
    return random.uniform() < 0.5 ? 1e300 * random.normal() : random.normal();
  });
  const auto recommended = recommend(square(), history);
  EXPECT_TRUE(!recommended || std::isfinite(recommended->expected));
}

}  // namespace
}  // namespace fettle::search::gp
