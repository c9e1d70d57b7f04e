// The gp sampler as a whole: its results, and caches without effect on a long history.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "search/gp/targets.h"
#include "search/maths/fit_schedule.h"
#include "search/search.h"
#include "search/space/space.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

using Function = std::function<std::optional<double>(const Json&)>;

double number(const Json& point, const char* name) { return point.find(name)->as_double(); }

std::unique_ptr<Sampler> sampler_of(const Problem& problem) {
  return std::move(make_sampler(problem)).value();
}

// Runs `trials` trials, with `parallel` pending at any time; results in the order of creation.
History run(const Problem& problem, const Function& function, std::int64_t trials,
            std::int64_t parallel = 1) {
  const auto sampler = sampler_of(problem);
  History history;
  for (std::int64_t ended = 0; ended < trials; ++ended) {
    while (static_cast<std::int64_t>(history.trials.size()) < std::min(trials, ended + parallel)) {
      history.trials.push_back(sampler->suggest(history, 1).points.at(0));
    }
    history.events.push_back(
        result(ended, function(history.trials[static_cast<std::size_t>(ended)])));
  }
  return history;
}

double best_of(const History& history) {
  double best = 1e300;
  for (const Event& event : history.events) {
    if (event.fact.values[0]) best = std::min(best, *event.fact.values[0]);
  }
  return best;
}

Problem branin_problem(std::int64_t seed) {
  return problem_of({real("x", -5, 10), real("y", 0, 15)}, "gp", seed);
}

double branin(const Json& point) {
  const double x = number(point, "x");
  const double y = number(point, "y");
  const double pi = std::numbers::pi;
  return std::pow(y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6, 2) +
         10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

TEST(GpSampler, FindsTheMinimumOfASmoothFunction) {
  for (const std::int64_t seed : {1, 2, 3}) {
    EXPECT_LT(best_of(run(branin_problem(seed), branin, 40)), 0.3979 + 0.02) << seed;
  }
}

TEST(GpSampler, FindsItWithEightPending) {
  for (const std::int64_t seed : {1, 2, 3}) {
    EXPECT_LT(best_of(run(branin_problem(seed), branin, 50, 8)), 0.3979 + 0.15) << seed;
  }
}

TEST(GpSampler, FindsTheBranchAndItsBestInAConditionalSpace) {
  const Problem problem =
      problem_of({choice("o", {"a", "b", "c"}), only_if(real("p", 0, 1), "o", {"a"}),
                  only_if(real("q", 0, 1), "o", {"b"}), integer("n", 1, 8)},
                 "gp");
  const auto function = [](const Json& point) {
    const std::string branch = point.find("o")->as_string();
    double out = 0.1 * std::abs(number(point, "n") - 5);
    if (branch == "a") out += 0.2 + std::pow(number(point, "p") - 0.3, 2);
    if (branch == "b") out += 2 * std::pow(number(point, "q") - 0.8, 2);
    return branch == "c" ? out + 0.5 : out;
  };
  EXPECT_LT(best_of(run(problem, function, 50)), 0.002);
}

TEST(GpSampler, InfeasibleTrialsAreWalls) {
  const auto function = [](const Json& point) {
    const double x = number(point, "x");
    return x < 0 ? std::nullopt : std::optional(branin(point));
  };
  const History history = run(branin_problem(1), function, 50);
  EXPECT_LT(best_of(history), 0.3979 + 0.05);
  int infeasible = 0;
  for (std::size_t i = 10; i < history.events.size(); ++i) {
    infeasible += history.events[i].fact.infeasible;
  }
  EXPECT_LT(infeasible, 13);  // a third of the space
}

// The best feasible place lies at the wall: the region beyond must not push the search away.
TEST(GpSampler, FindsTheBestPointAtTheEdgeOfTheFeasibleRegion) {
  const Problem problem = problem_of({real("x", 0, 1), real("y", 0, 1), real("z", 0, 1)}, "gp", 2);
  const auto function = [](const Json& point) {
    const double sum = number(point, "x") + number(point, "y");
    if (sum < 1) return std::optional<double>();
    return std::optional(sum + std::pow(number(point, "x") - 0.3, 2) +
                         std::pow(number(point, "z") - 0.6, 2));
  };
  EXPECT_LT(best_of(run(problem, function, 45)), 1.04);
}

TEST(GpSampler, OutliersDoNotBlindIt) {
  const auto function = [](const Json& point) {
    const double value = branin(point);
    return value > 100 ? 1e12 * value : value;
  };
  EXPECT_LT(best_of(run(branin_problem(2), function, 45)), 0.3979 + 0.05);
}

// The history passes anchors, fits at every outcome and at some, and the largest model. The sampler
// is asked seldom, since each question to a new one costs its fits, and only at the end twice with
// the same fit, with a line added to the factor in between.
TEST(GpSampler, ANewSamplerAnswersTheSameOnALongHistory) {
  constexpr std::int64_t kTrials = 484;
  const Problem problem = problem_of({real("x", -5, 10), real("y", 0, 15), choice("c", {"a", "b"}),
                                      only_if(integer("n", 1, 100), "c", {"b"})},
                                     "gp", 5);
  const Space space = Space::make(problem.parameters).value();
  const auto cached = sampler_of(problem);
  History history;
  Random random(5);
  std::int64_t ended = 0;
  for (std::int64_t trial = 0; trial < kTrials; ++trial) {
    // Suggested points now and then, random points between: the test is not about their quality.
    Json point = space.write(space.draw(random));
    if (trial == 25 || trial == 120 || trial >= kTrials - 2) {
      const Suggestion ours = cached->suggest(history, 2);
      ASSERT_EQ(ours.points, sampler_of(problem)->suggest(history, 2).points) << trial;
      point = ours.points[0];
    }
    history.trials.push_back(point);
    if (trial % 5 == 4) continue;  // stays pending
    ++ended;
    const bool failed = trial % 17 == 3;
    history.events.push_back(result(trial, failed ? std::nullopt : std::optional(branin(point))));
  }
  EXPECT_GT(ended, static_cast<std::int64_t>(gp::kMostModelled));
}

// The parameters of the trial with the best result.
const Json& looks_best(const History& history) {
  const auto value = [](const Event& event) { return *event.fact.values[0]; };
  const auto found =
      std::min_element(history.events.begin(), history.events.end(),
                       [&](const Event& a, const Event& b) { return value(a) < value(b); });
  return history.trials[static_cast<std::size_t>(found->trial)];
}

// A good place on the first choice, a better one on the last: results that differ only by noise
// must not keep the search at the first.
struct TwoPlaces {
  static double loss(const Json& point) {
    const bool best = point.find("c")->as_string() == "d";
    const double x = number(point, "x") - (best ? 0.25 : 0.6);
    const double y = number(point, "y") - 0.4;
    return x * x + y * y + 0.1 * number(point, "z") + (best ? 0 : 0.1);
  }
  static bool is_better_place(const Json& point) { return loss(point) < 0.1; }

  static History search(std::int64_t seed, std::int64_t revision) {
    Problem problem = problem_of(
        {real("x", 0, 1), real("y", 0, 1), real("z", 0, 1), choice("c", {"a", "b", "c", "d"})},
        "gp", seed);
    problem.revision = revision;
    Random random(static_cast<std::uint64_t>(seed));
    return run(
        problem, [&](const Json& point) { return loss(point) + 0.04 * random.normal(); }, 50);
  }
};

// The first revision stays there.
TEST(GpSampler, NoiseDoesNotKeepItWhereItIs) {
  int found = 0;
  for (std::int64_t seed = 0; seed < 12; ++seed) {
    const History history = TwoPlaces::search(seed, kFirstRevision);
    const auto tail = history.trials.end() - 10;
    found += std::count_if(tail, history.trials.end(), TwoPlaces::is_better_place) >= 5;
  }
  EXPECT_GE(found, 10);
}

// Later revisions move to the next basin when the first is used up.
TEST(GpSampler, NoiseDoesNotKeepItFromTheBetterPlace) {
  int found = 0;
  for (std::int64_t seed = 0; seed < 12; ++seed) {
    const History history = TwoPlaces::search(seed, kNewestRevision);
    found += std::ranges::count_if(history.trials, TwoPlaces::is_better_place) >= 5;
  }
  EXPECT_EQ(found, 12);
}

// With the same seeds the mean is 0.049 without regard to the noise, and 0.053 in the first
// revision.
TEST(GpSampler, TheTrialThatLooksBestIsGoodInSpiteOfNoise) {
  if (kSanitized) GTEST_SKIP() << "measures what a search is worth";
  constexpr std::int64_t kSeeds = 48;
  double sum = 0;
  for (std::int64_t seed = 0; seed < kSeeds; ++seed) {
    sum += TwoPlaces::loss(looks_best(TwoPlaces::search(seed, kNewestRevision)));
  }
  EXPECT_LT(sum / kSeeds, 0.043);
}

TEST(GpSampler, ManyPendingTrialsSpread) {
  for (const std::int64_t seed : {1, 2, 3}) {
    const Problem problem = branin_problem(seed);
    const History history = run(problem, branin, 20);
    const std::vector<Json> points = sampler_of(problem)->suggest(history, 30).points;
    ASSERT_EQ(points.size(), 30U);
    int apart = 0;  // from all earlier points, by a hundredth of the space
    for (std::size_t i = 0; i < 30; ++i) {
      double nearest = 1;
      for (std::size_t j = 0; j < i; ++j) {
        const double dx = (number(points[i], "x") - number(points[j], "x")) / 15;
        const double dy = (number(points[i], "y") - number(points[j], "y")) / 15;
        nearest = std::min(nearest, std::hypot(dx, dy));
      }
      apart += nearest > 0.01;
    }
    EXPECT_GE(apart, 20) << seed;
  }
}

TEST(GpSampler, SpeaksOfItself) {
  EXPECT_EQ(sampler_of(branin_problem(1))->description(),
            "gp (Matern-5/2, log expected improvement, 4 startup trials)");
}

TEST(GpSampler, ExplainsAPointInTheUnitsOfTheObjective) {
  for (const double sign : {1.0, -1.0}) {
    Problem problem = branin_problem(1);
    if (sign < 0) problem.objectives[0].direction = api::Direction::kMaximize;
    const auto function = [&](const Json& point) { return sign * branin(point); };
    const History history = run(problem, function, 40);
    const auto sampler = sampler_of(problem);
    const auto best = std::min_element(
        history.trials.begin(), history.trials.end(),
        [](const Json& one, const Json& other) { return branin(one) < branin(other); });
    const Json near = Json::object({{"x", number(*best, "x") + 0.1}, {"y", number(*best, "y")}});
    const auto said = sampler->explain(history, near);
    ASSERT_TRUE(said && said->mean && said->deviation && said->acquisition);
    EXPECT_NEAR(*said->mean, function(near), 0.1);
    EXPECT_GT(*said->deviation, 0);
    EXPECT_LT(*said->deviation, 0.5);
    EXPECT_THAT(said->words, ::testing::HasSubstr("expected improvement"));
    const auto far = sampler->explain(history, *parse_json(R"({"x":-5.0,"y":0.0})"));
    EXPECT_GT(sign * *far->mean, sign * *said->mean + 5);
    EXPECT_GT(*far->deviation, 2);
  }
}

// A suggested point has the largest acquisition of some hundred.
TEST(GpSampler, ChoosesTheLargestAcquisition) {
  const Problem problem = branin_problem(3);
  History history = run(problem, branin, 25);
  const auto sampler = sampler_of(problem);
  const Json chosen = sampler->suggest(history, 1).points[0];
  const double acquisition = sampler->explain(history, chosen)->acquisition.value();
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    Json other = Json::object({{"x", 15 * random.uniform() - 5}, {"y", 15 * random.uniform()}});
    EXPECT_LE(sampler->explain(history, other)->acquisition.value(), acquisition + 1e-3);
  }
}

TEST(GpSampler, ExplainsPointsWithoutAModelInWords) {
  const auto start = sampler_of(branin_problem(1))->explain({}, *parse_json(R"({"x":0,"y":1})"));
  ASSERT_TRUE(start);
  EXPECT_THAT(start->words, ::testing::HasSubstr("point 1 of a quasi-random start"));
  EXPECT_FALSE(start->mean || start->acquisition);
  // Nothing feasible: the model is of ranks, so its mean has no unit.
  const auto nothing = [](const Json&) { return std::optional<double>(); };
  const History history = run(branin_problem(1), nothing, 10);
  const auto said = sampler_of(branin_problem(1))->explain(history, history.trials[0]);
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->mean || said->deviation);
  EXPECT_TRUE(said->acquisition);
}

TEST(FitSchedule, FitsGrowRareAndTwoBringAnyHistoryUpToDate) {
  int fits = 0;
  for (std::int64_t count = 1; count <= 1000; count = next_fit(count)) ++fits;
  EXPECT_LT(fits, 120);
  EXPECT_EQ(next_fit(5), 6);
  EXPECT_EQ(next_fit(100), 105);
  EXPECT_TRUE(is_anchor(64));
  EXPECT_FALSE(is_anchor(65));
  EXPECT_FALSE(is_anchor(4));
}

}  // namespace
}  // namespace fettle::search
