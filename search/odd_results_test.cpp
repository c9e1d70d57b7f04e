// Results that are hard to model: every sampler that learns continues with valid points, never
// twice the same, and a sampler that reads the whole history at once suggests the same point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "search/search.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::IsEmpty;

constexpr std::int64_t kTrials = 26;

// The result of trial number `trial` at a point; nullopt = infeasible.
using Result = std::function<std::optional<double>(std::int64_t trial, const Json& point)>;

struct Case {
  std::string name;
  Result result;
  std::int64_t pending = 1;  // trials at once
  bool reverse = false;      // the newest pending trial ends first
  bool ends = true;          // whether any trial ends
};

double x_of(const Json& point) { return point.find("x")->as_double(); }

double bowl(const Json& point) {
  return std::pow(x_of(point) - 0.3, 2) + (point.find("kind")->as_string() == "b" ? 0 : 1);
}

std::vector<Case> cases() {
  const auto smooth = [](std::int64_t, const Json& point) { return std::optional(bowl(point)); };
  return {
      {"AllEqual", [](std::int64_t, const Json&) { return std::optional(0.7); }},
      {"AllInfeasible", [](std::int64_t, const Json&) { return std::optional<double>(); }},
      {"AllInfeasibleButOne",
       [](std::int64_t trial, const Json&) {
         return trial == 7 ? std::optional(0.7) : std::nullopt;
       }},
      {"Huge",
       [](std::int64_t trial, const Json& point) {
         return std::optional((trial % 2 == 0 ? 1e300 : -1e300) * x_of(point));
       }},
      {"Discontinuous",
       [](std::int64_t, const Json& point) {
         return std::optional(bowl(point) + (x_of(point) > 0.35 ? 100 : 0));
       }},
      {"TiesAtTheBest",
       [](std::int64_t, const Json& point) { return std::optional(std::max(bowl(point), 0.5)); }},
      {"AllPending", smooth, kTrials, false, false},
      {"ReverseOrder", smooth, 8, true},
  };
}

// Includes parameters with a single value: a choice and an integer.
Problem odd_problem(const std::string& algorithm) {
  Problem out = problem_of({choice("kind", {"a", "b"}), real("x", 0, 1), choice("only", {"one"}),
                            integer("k", 3, 3), only_if(integer("m", 1, 9), "kind", {"a"})},
                           algorithm, 3);
  out.max_trials = kTrials;
  return out;
}

class OddResults : public ::testing::TestWithParam<std::tuple<std::string, Case>> {};

INSTANTIATE_TEST_SUITE_P(
    All, OddResults,
    ::testing::Combine(::testing::Values("auto", "portfolio", "gp", "tpe", "cmaes"),
                       ::testing::ValuesIn(cases())),
    [](const auto& test) { return std::get<0>(test.param) + std::get<1>(test.param).name; });

TEST_P(OddResults, DoNotStopTheSearch) {
  const auto& [algorithm, odd] = GetParam();
  const Problem problem = odd_problem(algorithm);
  const auto sampler = std::move(make_sampler(problem)).value();
  History history;
  std::vector<std::int64_t> pending;
  std::set<std::string> seen;
  double best = 1e300;
  while (static_cast<std::int64_t>(history.trials.size()) < kTrials) {
    const Suggestion now = sampler->suggest(history, 1);
    ASSERT_EQ(now.points.size(), 1U);
    const Json& point = now.points[0];
    EXPECT_THAT(complaint(problem.parameters, point), IsEmpty());
    EXPECT_TRUE(seen.insert(point.dump()).second) << point.dump() << " is tried twice";
    if (history.trials.size() % 9 == 8) {  // as after a restart
      EXPECT_EQ(std::move(make_sampler(problem)).value()->suggest(history, 1).points[0], point);
    }
    pending.push_back(static_cast<std::int64_t>(history.trials.size()));
    history.trials.push_back(point);
    if (!odd.ends || static_cast<std::int64_t>(pending.size()) < odd.pending) continue;
    const auto next = odd.reverse ? std::prev(pending.end()) : pending.begin();
    const std::int64_t trial = *next;
    pending.erase(next);
    const auto value = odd.result(trial, history.trials[static_cast<std::size_t>(trial)]);
    if (value) best = std::min(best, *value);
    history.events.push_back(result(trial, value));
  }
  const double bound = odd.name == "Discontinuous" ? 0.1 : 1e300;
  EXPECT_LE(best, bound) << "the cliff hides the optimum";
}

}  // namespace
}  // namespace fettle::search
