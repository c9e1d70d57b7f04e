// Plans are chosen by numbers alone: fake timings show each rule.
#include "kernels/cuda/libraries/plan_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fettle::kernels::cuda {
namespace {

const std::string kKey = "cudnn 91900 conv";

class Chooser : public ::testing::Test {
 protected:
  PlanChooser chooser(bool times = true, TimedPlans known = {}) {
    elsewhere_ = std::move(known);
    return {times,
            {.keep =
                 [this](const std::string& key, const TimedPlan& plan) {
                   kept_.emplace(key, plan);
                   return elsewhere_.emplace(key, plan).first->second;
                 },
             .read = [this] { return elsewhere_; }}};
  }
  // Returns the plan chosen for runs of these times; below 0: it cannot be run.
  Result<std::size_t> choose(PlanChooser& chooser, const std::vector<double>& microseconds) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < microseconds.size(); ++i)
      names.push_back("plan" + std::to_string(i));
    timed_.clear();
    return chooser.choose(kKey, names, [&](std::size_t i) -> Result<double> {
      timed_.push_back(i);
      if (microseconds[i] < 0) return io_error("plan " + std::to_string(i) + " does not run");
      return microseconds[i];
    });
  }

  TimedPlans kept_;
  TimedPlans elsewhere_;  // the file
  std::vector<std::size_t> timed_;
};

TEST_F(Chooser, TakesTheFastestAndKeepsIt) {
  PlanChooser plans = chooser();
  EXPECT_EQ(plans.known(kKey), nullptr);
  EXPECT_EQ(*choose(plans, {20, 12, 15}), 1U);
  EXPECT_EQ(kept_, (TimedPlans{{kKey, {"plan1", 12}}}));
  ASSERT_NE(plans.known(kKey), nullptr);
  EXPECT_EQ(plans.known(kKey)->plan, "plan1");
}

TEST_F(Chooser, StaysWithTheLibrarysFirstUnlessAnotherIsClearlyFaster) {
  PlanChooser plans = chooser();
  EXPECT_EQ(*choose(plans, {100, 98, 99}), 0U);
  PlanChooser others = chooser();
  EXPECT_EQ(*choose(others, {100, 98, 96.9}), 2U);
}

TEST_F(Chooser, SkipsPlansThatCannotRun) {
  PlanChooser plans = chooser();
  EXPECT_EQ(*choose(plans, {-1, 30, -1, 20}), 3U);
  const auto none = choose(plans, {-1, -1});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "plan 0 does not run");
}

TEST_F(Chooser, ReportsAnEmptyListOfPlans) {
  for (const bool times : {true, false}) {
    PlanChooser plans = chooser(times);
    const auto none = choose(plans, {});
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().message, "there is no plan to choose from");
  }
}

TEST_F(Chooser, TimesNoMoreThanAFew) {
  PlanChooser plans = chooser();
  EXPECT_EQ(*choose(plans, {9, 9, 9, 9, 9, 9, 9, 9, 1}), 0U);
  EXPECT_EQ(timed_.size(), PlanChooser::kMostTimed);
}

TEST_F(Chooser, WithoutTimingTakesTheFirstAndKnowsNothing) {
  PlanChooser plans = chooser(/*times=*/false, {{kKey, {"plan1", 1}}});
  EXPECT_EQ(plans.known(kKey), nullptr);
  EXPECT_EQ(*choose(plans, {20, 12}), 0U);
  EXPECT_TRUE(timed_.empty());
  EXPECT_TRUE(kept_.empty());
}

TEST_F(Chooser, RemembersTimedPlans) {
  PlanChooser plans = chooser(true, {{kKey, {"plan7", 5}}});
  ASSERT_NE(plans.known(kKey), nullptr);
  EXPECT_EQ(*plans.known(kKey), (TimedPlan{"plan7", 5}));
}

TEST_F(Chooser, TakesThePlanStoredByAnotherProcessMeanwhile) {
  PlanChooser plans = chooser();
  EXPECT_EQ(plans.known(kKey), nullptr);
  elsewhere_ = {{kKey, {"plan2", 11}}};
  EXPECT_EQ(*choose(plans, {20, 12, 15}), 2U);
  EXPECT_EQ(*plans.known(kKey), (TimedPlan{"plan2", 11}));
}

TEST_F(Chooser, FindsPlansThatAnotherProcessStored) {
  PlanChooser plans = chooser();
  EXPECT_EQ(plans.known(kKey), nullptr);
  elsewhere_ = {{kKey, {"plan2", 11}}};
  ASSERT_NE(plans.known(kKey), nullptr);
  EXPECT_EQ(*plans.known(kKey), (TimedPlan{"plan2", 11}));
}

TEST_F(Chooser, TakesItsOwnPlanIfTheStoredPlanIsMissing) {
  PlanChooser plans = chooser();
  elsewhere_ = {{kKey, {"of another driver", 11}}};
  EXPECT_EQ(*choose(plans, {20, 12, 15}), 1U);
  EXPECT_EQ(*plans.known(kKey), (TimedPlan{"plan1", 12}));
}

// Tries runs that succeed as `runs` says; returns the runs tried, in order, and the chosen one.
std::pair<std::vector<std::size_t>, Result<std::size_t>> first_of(const std::vector<bool>& runs) {
  std::vector<std::size_t> tried;
  auto first = first_that_runs(runs.size(), [&](std::size_t i) -> Status {
    tried.push_back(i);
    return runs[i] ? success() : io_error("plan " + std::to_string(i) + " does not run");
  });
  return {tried, std::move(first)};
}

TEST(FirstThatRuns, SkipsPlansThatDoNotRun) {
  const auto [tried, first] = first_of({false, false, true, true});
  EXPECT_EQ(*first, 2U);
  EXPECT_THAT(tried, ::testing::ElementsAre(0, 1, 2)) << "and tries no more";
}

TEST(FirstThatRuns, ReportsTheErrorOfTheFirstIfNoneRuns) {
  const Result<std::size_t> none = first_of({false, false}).second;
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "plan 0 does not run");
  const Result<std::size_t> nothing = first_of({}).second;
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().message, "there is no plan to choose from");
}

TEST(TakesExact, WhereItCostsLittle) {
  EXPECT_TRUE(takes_exact(100, 100));
  EXPECT_TRUE(takes_exact(114, 100));
  EXPECT_FALSE(takes_exact(116, 100));
  EXPECT_TRUE(takes_exact(50, 100));
  EXPECT_TRUE(takes_exact(std::nullopt, 100)) << "a remainder's plans are not timed";
  EXPECT_TRUE(takes_exact(std::nullopt, std::nullopt));
}

}  // namespace
}  // namespace fettle::kernels::cuda
