// Points to try first and results of earlier Studies: how they are used, and their cost if they
// mislead.
#include "search/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "api/fields/enum_names.h"
#include "api/study/study.h"
#include "search/space/space_map.h"
#include "search/testing/problems.h"
#include "search/transfer.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Sampler> sampler_of(const Problem& problem) {
  Result<std::unique_ptr<Sampler>> out = make_sampler(problem);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
  return std::move(out).value();
}

std::vector<std::string> texts(const std::vector<Json>& points) {
  std::vector<std::string> out;
  for (const Json& point : points) out.push_back(point.dump());
  return out;
}

// ---- Mapping -----------------------------------------------------------------------------------

std::string image(const std::vector<api::Parameter>& parameters, const std::string& point,
                  std::map<std::string, std::string> names = {}) {
  Random random(1);
  const auto mapped =
      SpaceMap::make(parameters, std::move(names))->image(*parse_json(point), random);
  return mapped ? mapped->dump() : "none";
}

TEST(SpaceMap, CarriesValuesOverByName) {
  const std::vector<api::Parameter> space = {real("lr", 0, 1), stepped("drop", 0, 1, 0.25),
                                             integer("n", 1, 9), choice("o", {"sgd", "adam"})};
  EXPECT_EQ(image(space, R"({"o":"adam","n":3,"lr":0.5,"drop":0.3,"other":7})"),
            R"({"lr":0.5,"drop":0.25,"n":3,"o":"adam"})");
  EXPECT_EQ(image(space, R"({"o":"adam","n":3.4,"rate":0.5,"drop":0.9})", {{"lr", "rate"}}),
            R"({"lr":0.5,"drop":1,"n":3,"o":"adam"})");
}

TEST(SpaceMap, DropsUnknownParameters) {
  const std::vector<api::Parameter> space = {real("lr", 0, 1), choice("o", {"sgd", "adam"})};
  EXPECT_EQ(image(space, R"({"lr":1.5,"o":"sgd"})"), "none");
  EXPECT_EQ(image(space, R"({"lr":0.5,"o":"lion"})"), "none");
  EXPECT_EQ(image(space, R"({"lr":"high","o":"sgd"})"), "none");
}

TEST(SpaceMap, DrawsMissingParameters) {
  const std::vector<api::Parameter> space = {choice("o", {"sgd", "adam"}),
                                             only_if(real("m", 0, 1), "o", {"sgd"})};
  EXPECT_EQ(image(space, R"({"o":"adam","m":0.5})"), R"({"o":"adam"})");
  std::set<std::string> drawn;
  for (std::uint64_t i = 0; i < 20; ++i) {
    Random random(1, i);
    const auto point = SpaceMap::make(space, {})->image(Json::object(), random);
    ASSERT_TRUE(point);
    EXPECT_EQ(complaint(space, *point), "");
    drawn.insert(point->dump());
  }
  EXPECT_GT(drawn.size(), 5U);
}

// ---- Transfer ----------------------------------------------------------------------------------

// A Transfer after results at random points: x in the earlier Study, f(x) in this one.
template <class F>
Transfer after(const Space& space, std::size_t results, const F& f) {
  std::vector<Transfer::Observation> priors;
  Random random(5);
  for (int i = 0; i < 40; ++i) {
    const double x = random.uniform();
    priors.push_back({{x}, {x}});
  }
  Transfer out(space, {api::Objective{}}, priors);
  for (std::size_t i = 0; i < results; ++i) {
    const double x = random.uniform();
    out.add({{x}, {f(x)}});
  }
  return out;
}

TEST(Transfer, ShiftsPriorsByTheirMedianError) {
  const Space space = *Space::make({real("x", 0, 1)});
  const Transfer transfer = after(space, 8, [](double x) { return x + 5; });
  EXPECT_NEAR(transfer.shifts()[0], 5, 0.05);
  EXPECT_GT(transfer.in_force().size(), 5U);
}

TEST(Transfer, KeepsAllUntilThereAreResultsToCompareWith) {
  const Space space = *Space::make({real("x", 0, 1)});
  const Transfer transfer = after(space, Transfer::kFirstCheck - 1, [](double x) { return -x; });
  EXPECT_EQ(transfer.in_force().size(), 40U);
  EXPECT_EQ(transfer.shifts()[0], 0);
}

TEST(Transfer, DropsPriorsThatRankResultsWrongly) {
  const Space space = *Space::make({real("x", 0, 1)});
  for (const std::size_t results : {4U, 8U}) {
    EXPECT_TRUE(after(space, results, [](double x) { return -x; }).in_force().empty());
  }
}

TEST(Transfer, ForgetsPriorsOnceResultsOutweighThem) {
  const Space space = *Space::make({real("x", 0, 1)});
  const auto kept = [&](std::size_t results) {
    return after(space, results, [](double x) { return x; }).in_force().size();
  };
  EXPECT_GT(kept(4), kept(16));
  EXPECT_EQ(kept(Transfer::kOutweighed), 0U);
}

// ---- Laws of every sampler ---------------------------------------------------------------------

class EverySampler : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(WarmStart, EverySampler, ::testing::ValuesIn(searching_samplers()),
                         [](const auto& test) { return test.param; });

// A problem with `first` random points to try first and `priors` random prior results.
Problem warm(const std::vector<api::Parameter>& parameters, const std::string& algorithm,
             std::int64_t seed, int first, int priors) {
  Problem out = problem_of(parameters, algorithm, seed);
  const Space space = *Space::make(parameters);
  Random random(77, static_cast<std::uint64_t>(seed));
  for (int i = 0; i < first; ++i) out.first_points.push_back(space.write(space.draw(random)));
  for (int i = 0; i < priors; ++i) {
    out.priors.push_back({"old-" + std::to_string(i), space.write(space.draw(random)),
                          std::vector<double>(out.objectives.size(), random.normal())});
  }
  return out;
}

TEST_P(EverySampler, IsAPureFunctionOfProblemAndHistory) {
  Random random(31);
  for (int study = 0; study < 12; ++study) {
    const Problem problem = warm(random_space(random, 5, random.below(3) == 0), GetParam(), study,
                                 study % 3, study % 4 * 7);
    const auto cached = sampler_of(problem);
    History history;
    for (int move = 0; move < 14; ++move) {
      const auto n = static_cast<std::int64_t>(random.below(4)) + 1;
      const std::vector<Json> at_once = cached->suggest(history, n).points;
      ASSERT_EQ(texts(at_once), texts(sampler_of(problem)->suggest(history, n).points));
      History growing = history;
      for (const Json& point : at_once) {
        ASSERT_EQ(complaint(problem.parameters, point), "") << point.dump();
        ASSERT_EQ(texts(cached->suggest(growing, 1).points),
                  std::vector<std::string>{point.dump()});
        growing.trials.push_back(point);
      }
      if (random.below(3) > 0) history = growing;
      for (std::size_t told = 0; told < 2 && !history.trials.empty(); ++told) {
        const std::uint64_t trial = random.below(history.trials.size());
        history.events.push_back(result(static_cast<std::int64_t>(trial), random.normal()));
      }
    }
  }
}

// Points of earlier Studies count as untried in this one.
TEST_P(EverySampler, ExhaustsAFiniteSpaceAllTheSame) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  const std::vector<api::Parameter> parameters = {boolean("a"), integer("b", 1, 6)};
  const Problem problem = warm(parameters, GetParam(), 3, 2, 12);
  const auto sampler = sampler_of(problem);
  History history;
  std::set<std::string> seen;
  for (std::int64_t trial = 0; trial < 12; ++trial) {
    const Suggestion next = sampler->suggest(history, 1);
    ASSERT_EQ(next.points.size(), 1U);
    EXPECT_TRUE(seen.insert(next.points[0].dump()).second) << next.points[0].dump();
    history.trials.push_back(next.points[0]);
    history.events.push_back(result(trial, static_cast<double>(trial % 4)));
  }
  EXPECT_TRUE(sampler->suggest(history, 1).exhausted);
}

// The sampler's own trials get the same draws as in a Study that begins cold.
TEST(WarmStart, LeavesTheNumbersOfDrawsAlone) {
  const std::vector<api::Parameter> parameters = {real("x", 0, 1), real("y", 0, 1)};
  for (const char* algorithm : {"random", "sobol"}) {
    const auto cold =
        texts(sampler_of(problem_of(parameters, algorithm, 4))->suggest({}, 6).points);
    const Problem problem = warm(parameters, algorithm, 4, 2, 9);
    auto points = texts(sampler_of(problem)->suggest({}, 2 + 3 + 6).points);
    points.erase(points.begin(), points.begin() + 5);
    EXPECT_EQ(points, cold) << algorithm;
  }
}

TEST(WarmStart, TriesFirstPointsThenTheBestPriors) {
  Problem problem = problem_of({integer("n", 0, 99)}, "random");
  problem.objectives[0].direction = api::Direction::kMaximize;
  problem.first_points = {*parse_json(R"({"n":50})"), *parse_json(R"({"n":7})")};
  for (const int n : {1, 2, 7, 3, 4}) {
    problem.priors.push_back({"old", Json::object({{"n", n}}), {static_cast<double>(n)}});
  }
  const auto sampler = sampler_of(problem);
  EXPECT_THAT(texts(sampler->suggest({}, 4).points),
              ElementsAre(R"({"n":50})", R"({"n":7})", R"({"n":4})", R"({"n":3})"));
  EXPECT_THAT(sampler->description(), HasSubstr("after 4 points to try first"));
  History history;
  history.trials = {*parse_json(R"({"n":7})")};  // already tried
  EXPECT_THAT(texts(sampler->suggest(history, 3).points),
              ElementsAre(R"({"n":50})", R"({"n":4})", R"({"n":3})"));
  const auto why = sampler->explain(history, *parse_json(R"({"n":50})"));
  ASSERT_TRUE(why);
  EXPECT_EQ(why->words, "one of the points to try first");
}

TEST(WarmStart, ExplainsAPointBeforeTheFirstPointsAreChosen) {
  Problem problem = problem_of({real("x", 0, 1)}, "tpe");
  problem.first_points = {*parse_json(R"({"x":0.25})"), *parse_json(R"({"x":0.75})")};
  const auto why = sampler_of(problem)->explain({}, *parse_json(R"({"x":0.5})"));
  ASSERT_TRUE(why);
  EXPECT_THAT(why->words, HasSubstr("point 1 of a quasi-random start"));
}

TEST(WarmStart, DrawsMissingParametersOfAFirstPoint) {
  Problem problem = problem_of({real("x", 0, 1), real("y", 0, 1)}, "gp");
  problem.first_points = {*parse_json(R"({"y":0.25})")};
  const Json point = sampler_of(problem)->suggest({}, 1).points[0];
  EXPECT_EQ(complaint(problem.parameters, point), "");
  EXPECT_EQ(point.find("y")->as_double(), 0.25);
}

TEST(WarmStart, RefusesAFirstPointOutsideTheSpace) {
  Problem problem = problem_of({real("x", 0, 1)}, "gp");
  problem.first_points = {*parse_json(R"({"x":2})")};
  const auto sampler = make_sampler(problem);
  ASSERT_FALSE(sampler.ok());
  EXPECT_THAT(sampler.error().message, HasSubstr(R"({"x":2} is not of this space)"));
}

TEST(WarmStart, PassesOverPriorsOfAnotherSpaceOrWithoutAValue) {
  Problem problem = problem_of({real("x", 0, 1)}, "tpe");
  problem.priors = {{"old", *parse_json(R"({"y":1})"), {1}},
                    {"old", *parse_json(R"({"x":0.5})"), {}},
                    {"old", *parse_json(R"({"x":0.25})"), {std::nan("")}}};
  EXPECT_EQ(texts(sampler_of(problem)->suggest({}, 9).points),
            texts(sampler_of(problem_of({real("x", 0, 1)}, "tpe"))->suggest({}, 9).points));
}

// A search of 12 trials that `rule` stops, from 20 priors.
struct StoppedSearch {
  StoppedSearch(const std::string& algorithm, const api::EarlyStopping& rule)
      : problem(warm({real("x", 0, 1), real("y", 0, 1)}, algorithm, 5, 0, 20)) {
    problem.resource = {"epoch", 1, 9};
    problem.early_stopping = rule;
  }

  // The points after 12 trials: every third one has a result, the others stopped at step 1.
  std::vector<std::string> next_points() const {
    const auto sampler = sampler_of(problem);
    History history;
    for (std::int64_t trial = 0; trial < 12; ++trial) {
      history.trials.push_back(sampler->suggest(history, 1).points.at(0));
      const double value = history.trials.back().find("x")->as_double();
      history.events.push_back(trial % 3 == 0 ? result(trial, value)
                                              : fact(trial, api::FactKind::kStopped, 1, value + 1));
    }
    return texts(sampler->suggest(history, 4).points);
  }

  // The same search that knows the points of the best three priors, but no results.
  StoppedSearch with_points_alone() const {
    StoppedSearch out = *this;
    std::vector<api::PriorObservation> best = problem.priors;
    std::ranges::sort(best, {}, [](const auto& prior) { return prior.values[0]; });
    for (std::size_t i = 0; i < 3; ++i) out.problem.first_points.push_back(best[i].parameters);
    out.problem.priors.clear();
    return out;
  }

  Problem problem;
};

// Priors would rank before every trial that ended at a rung.
TEST(WarmStart, GivesASearchWithRungsThePointsAlone) {
  for (const bool promote : {false, true}) {
    for (const char* algorithm : {"gp", "tpe", "auto"}) {
      SCOPED_TRACE(algorithm);
      StoppedSearch search(algorithm, {.name = api::StoppingKind::kAsha, .promote = promote});
      const std::vector<std::string> cold = search.with_points_alone().next_points();
      EXPECT_EQ(search.next_points(), cold);
      search.problem.revision = 2;
      EXPECT_NE(search.next_points(), cold) << "a Study of revision 2 goes on as it began";
      search.problem.resource = {"epoch", 9, 9};
      search.problem.revision = kNewestRevision;
      EXPECT_NE(search.next_points(), cold) << "without rungs nothing ends at one";
    }
  }
}

TEST(WarmStart, TeachesASearchThatComparesAtEveryStep) {
  const StoppedSearch search("gp", {.name = api::StoppingKind::kMedian});
  EXPECT_NE(search.next_points(), search.with_points_alone().next_points());
}

// ---- Benefit and cost --------------------------------------------------------------------------

// A bowl whose minimum is 0, at `centre`.
double bowl(const Json& point, double centre) {
  double out = 0;
  for (const auto& [name, value] : point.as_object()) {
    const double away = value.as_double() - centre;
    out += away * away + 0.02 * (1 - std::cos(12 * away));
  }
  return out;
}

std::vector<api::Parameter> cube() {
  return {real("a", 0, 1), real("b", 0, 1), real("c", 0, 1), real("d", 0, 1)};
}

// The average number of trials, over 20 seeds, until a result is below `goal`; at most 80 each.
// `old_centre`: the optimum of an earlier Study of 40 random trials; nullopt: a cold start.
double trials_needed(const std::string& algorithm, std::optional<double> old_centre, double goal) {
  double total = 0;
  for (std::int64_t seed = 0; seed < 20; ++seed) {
    Problem problem = problem_of(cube(), algorithm, seed);
    if (old_centre) {
      problem.priors = warm(cube(), algorithm, seed, 0, 40).priors;
      for (api::PriorObservation& prior : problem.priors) {
        prior.values = {bowl(prior.parameters, *old_centre)};
      }
    }
    const auto sampler = sampler_of(problem);
    History history;
    double best = 1e9;
    while (best > goal && history.trials.size() < 80) {
      const Json point = sampler->suggest(history, 1).points.at(0);
      history.trials.push_back(point);
      const double value = bowl(point, 0.3);
      history.events.push_back(result(static_cast<std::int64_t>(history.trials.size()) - 1, value));
      best = std::min(best, value);
    }
    total += static_cast<double>(history.trials.size()) / 20;
  }
  return total;
}

// Moved: the earlier optimum is nearly as far from the present one as a corner is from the middle.
TEST(WarmStart, HelpsWhereTheOptimumStayedAndCostsAFewTrialsWhereItMoved) {
  for (const auto& [algorithm, goal, price] :
       {std::tuple{"tpe", 0.1, 10.0}, std::tuple{"gp", 0.02, 10.0},
        std::tuple{"cmaes", 0.1, 15.0}}) {
    const double cold = trials_needed(algorithm, std::nullopt, goal);
    const double same = trials_needed(algorithm, 0.3, goal);
    const double moved = trials_needed(algorithm, 0.7, goal);
    SCOPED_TRACE(algorithm + (": trials needed from a cold start " + std::to_string(cold)) +
                 ", where the optimum stayed " + std::to_string(same) + ", where it moved " +
                 std::to_string(moved));
    EXPECT_LT(same, 0.75 * cold);
    EXPECT_LT(moved, cold + price);
  }
}

}  // namespace
}  // namespace fettle::search
