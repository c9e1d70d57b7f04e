#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "search/search.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Verdict kGo = Verdict::kContinue;
constexpr Verdict kStop = Verdict::kStop;

api::EarlyStopping asha(double reduction_factor) {
  api::EarlyStopping out;
  out.name = api::StoppingKind::kAsha;
  out.reduction_factor = reduction_factor;
  return out;
}

api::EarlyStopping median_rule(std::int64_t min_trials, std::int64_t start_step) {
  api::EarlyStopping out;
  out.name = api::StoppingKind::kMedian;
  out.min_trials = min_trials;
  out.start_step = start_step;
  return out;
}

api::Resource epochs(std::int64_t min, std::int64_t max) { return {"epoch", min, max}; }

Problem problem_with(api::Resource resource, api::Direction direction = api::Direction::kMinimize) {
  Problem out = problem_of({real("x", 0, 1)}, "random");
  out.resource = std::move(resource);
  out.objectives[0].direction = direction;
  return out;
}

struct Row {
  std::int64_t trial;
  std::int64_t step;
  std::optional<double> value;
  Verdict verdict;
};

// Reports each row as a Rung fact and judges its trial there and then.
void expect_verdicts(const Problem& problem, const api::EarlyStopping& rules,
                     const std::vector<Row>& rows) {
  History history;
  history.trials.assign(100, Json::object());
  for (const Row& row : rows) {
    history.events.push_back(fact(row.trial, api::FactKind::kRung, row.step, row.value));
    const Judgement judgement = judge(problem, rules, history, row.trial);
    EXPECT_EQ(judgement.verdict, row.verdict)
        << "trial " << row.trial << " at step " << row.step << ": " << judgement.reason;
  }
}

TEST(RungSteps, FollowTheRule) {
  EXPECT_THAT(rung_steps({}, std::nullopt, epochs(1, 100)), IsEmpty());
  EXPECT_THAT(rung_steps({}, asha(3), epochs(1, 9)), ElementsAre(1, 3));
  EXPECT_THAT(rung_steps({}, asha(3), epochs(1, 10)), ElementsAre(1, 3, 9));
  EXPECT_THAT(rung_steps({}, asha(4), epochs(2, 100)), ElementsAre(2, 8, 32));
  EXPECT_THAT(rung_steps({}, asha(1.5), epochs(1, 8)), ElementsAre(1, 2, 3, 4, 6));
  EXPECT_THAT(rung_steps({}, asha(3), epochs(5, 5)), IsEmpty());
  EXPECT_THAT(rung_steps({}, median_rule(5, 3), epochs(1, 7)), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(rung_steps({}, median_rule(5, 1), epochs(4, 7)), ElementsAre(4, 5, 6));
  EXPECT_THAT(rung_steps({}, median_rule(5, 9), epochs(1, 7)), IsEmpty());
}

TEST(RungSteps, AreBounded) {
  const std::vector<std::int64_t> steps =
      rung_steps({}, median_rule(5, 1), epochs(1, 1'000'000'000));
  EXPECT_EQ(steps.size(), 1000U);
  EXPECT_EQ(steps.front(), 1);
  EXPECT_LT(steps.back(), 1'000'000'000);
  EXPECT_LE(rung_steps({}, asha(1.0000001), epochs(1, 1'000'000'000)).size(), 1000U);
  EXPECT_EQ(rung_steps({}, asha(3), epochs(1, 1'000'000'000'000'000)).back(),
            617'673'396'283'947)  // 3^31
  ;
}

// eta 3: the best max(1, n / 3) of n values continue.
TEST(Asha, AHandWorkedTable) {
  expect_verdicts(problem_with(epochs(1, 9)), asha(3),
                  {
                      {0, 1, 0.50, kGo},    // the first is the best
                      {1, 1, 0.60, kStop},  // best 1 of 2: 0.50
                      {2, 1, 0.40, kGo},    // best 1 of 3: 0.40
                      {3, 1, 0.45, kStop},  // best 1 of 4
                      {4, 1, 0.30, kGo},    // best 1 of 5
                      {5, 1, 0.40, kGo},    // best 2 of 6: 0.30, and 0.40 twice
                      {0, 3, 0.20, kGo},    // the next rung counts for itself
                      {2, 3, 0.25, kStop},  // best 1 of 2
                      {4, 3, 0.10, kGo},    // best 1 of 3
                      {6, 1, 0.39, kGo},    // best 2 of 7: 0.30, 0.39
                      {7, 1, 0.39, kGo},    // a tie with the last that continues
                  });
}

TEST(Asha, MaximisesTheFirstObjective) {
  expect_verdicts(problem_with(epochs(1, 9), api::Direction::kMaximize), asha(2),
                  {{0, 1, 0.5, kGo}, {1, 1, 0.4, kStop}, {2, 1, 0.6, kGo}, {3, 1, 0.55, kGo}});
}

TEST(Asha, WithoutAFiniteValueATrialStopsAndCountsAsTheWorst) {
  expect_verdicts(problem_with(epochs(1, 9)), asha(2),
                  {{0, 1, std::nullopt, kStop},
                   {1, 1, 1e300, kGo},
                   {2, 1, -1e300, kGo},
                   {3, 1, 0.0, kGo}});  // best 2 of 4
}

TEST(Asha, TheReasonShowsTheComparison) {
  const Problem problem = problem_with(epochs(1, 9), api::Direction::kMaximize);
  History history;
  history.trials.assign(2, Json::object());
  history.events = {fact(0, api::FactKind::kRung, 3, 0.75), fact(1, api::FactKind::kRung, 3, 0.71)};
  const Judgement judgement = judge(problem, asha(3), history, 1);
  EXPECT_EQ(judgement.rung, 1);
  EXPECT_EQ(judgement.reason, "asha: rung 1 (step 3): 0.71 is not among the best 1 of 2");
}

// A constraint is decided at the end; until then it only affects the order.
TEST(Asha, AConstraintStopsNoTrialButRanksBeforeTheValue) {
  const Problem problem = problem_with(epochs(1, 9));
  History history;
  history.trials.assign(4, Json::object());
  const auto outside = [](std::int64_t trial, double value) {
    Event event = fact(trial, api::FactKind::kRung, 1, value);
    event.fact.infeasible = true;
    return event;
  };
  const auto reason_of = [&](std::int64_t trial) {
    return judge(problem, asha(2), history, trial).reason;
  };
  history.events = {outside(0, 0.9)};
  EXPECT_EQ(reason_of(0),
            "asha: rung 0 (step 1): 0.9, outside a constraint so far, is among the best 1 of 1");
  history.events = {outside(0, 0.9), outside(1, 0.5), outside(2, 0.7)};
  EXPECT_EQ(judge(problem, asha(2), history, 1).verdict, kGo);
  EXPECT_EQ(judge(problem, asha(2), history, 2).verdict, kStop);
  history.events.push_back(fact(3, api::FactKind::kRung, 1, 0.8));
  EXPECT_EQ(reason_of(3), "asha: rung 0 (step 1): 0.8 is among the best 2 of 4");
  history.events.push_back(fact(2, api::FactKind::kRung, 1, std::nullopt));
  EXPECT_EQ(reason_of(2), "asha: rung 0 (step 1): its objective has no finite value");
}

TEST(Asha, LaterFactsDoNotCount) {
  const Problem problem = problem_with(epochs(1, 9));
  History history;
  history.trials.assign(3, Json::object());
  history.events = {fact(0, api::FactKind::kRung, 1, 0.5), fact(1, api::FactKind::kRung, 1, 0.1)};
  EXPECT_EQ(judge(problem, asha(3), history, 0).verdict, kGo);  // it was the best when it reported
}

TEST(Asha, ATrialThatReportsAStepAgainCountsOnce) {
  expect_verdicts(problem_with(epochs(1, 9)), asha(3),
                  {{0, 1, 0.5, kGo}, {0, 1, 0.5, kGo}, {0, 1, 0.5, kGo}, {1, 1, 0.6, kStop}});
}

TEST(Judge, WithoutARungATrialGoesOn) {
  History history;
  history.trials.assign(2, Json::object());
  history.events = {result(0, 1.0)};
  for (const api::EarlyStopping& rules : {asha(3), median_rule(1, 1)}) {
    EXPECT_EQ(judge(problem_with(epochs(1, 9)), rules, history, 1).verdict, kGo);
  }
}

// Running averages at step 2: trial 0 (0.4 + 0.2) / 2 = 0.3, trial 1 (0.8 + 0.6) / 2 = 0.7,
// trial 2 (0.5 + 0.5) / 2 = 0.5. Their median is 0.5.
TEST(Median, AHandWorkedTable) {
  expect_verdicts(problem_with(epochs(1, 9)), median_rule(3, 2),
                  {
                      {0, 1, 0.4, kGo},
                      {0, 2, 0.2, kGo},
                      {1, 1, 0.8, kGo},  // before the start step
                      {1, 2, 0.6, kGo},  // one other value; three are needed
                      {2, 1, 0.5, kGo},
                      {2, 2, 0.5, kGo},
                      {3, 1, 0.9, kGo},
                      {3, 2, 0.6, kStop},  // the best so far, 0.6, is worse than 0.5
                      {4, 1, 0.1, kGo},
                      {4, 2, 0.9, kGo},  // the best so far is 0.1
                      {5, 1, 0.9, kGo},
                      {5, 2, 0.5, kGo},  // as good as the median of five, 0.5
                  });
}

TEST(Median, WithoutAFiniteValueATrialStopsOnceThereIsAMedian) {
  expect_verdicts(problem_with(epochs(1, 9), api::Direction::kMaximize), median_rule(2, 1),
                  {{0, 1, std::nullopt, kGo},
                   {1, 1, 0.5, kGo},
                   {2, 1, 0.6, kGo},
                   {3, 1, std::nullopt, kStop},
                   {4, 1, 0.1, kGo}});  // half of the others have no value
}

TEST(Median, TheReasonShowsTheComparison) {
  const Problem problem = problem_with(epochs(1, 9));
  History history;
  history.trials.assign(2, Json::object());
  history.events = {fact(0, api::FactKind::kRung, 1, 0.25), fact(1, api::FactKind::kRung, 1, 0.5)};
  EXPECT_EQ(judge(problem, median_rule(1, 1), history, 1).reason,
            "median: rung 0 (step 1): the best value so far, 0.5, is worse than the median 0.25 of "
            "1 others");
  EXPECT_THAT(judge(problem, median_rule(5, 1), history, 1).reason,
              HasSubstr("only 1 of 5 other trials have come here"));
}

api::EarlyStopping rule(const std::string& name) {
  api::EarlyStopping out;
  out.name = *api::from_string<api::StoppingKind>(name);
  return out;
}

TEST(RungSteps, CoverTheWholeCurveForRulesThatNeedIt) {
  for (const char* name : {"patience", "curve"}) {
    api::EarlyStopping rules = rule(name);
    rules.start_step = 4;
    EXPECT_THAT(rung_steps({}, rules, epochs(1, 7)), ElementsAre(1, 2, 3, 4, 5, 6)) << name;
  }
  api::EarlyStopping rules = rule("threshold");
  rules.start_step = 4;
  EXPECT_THAT(rung_steps({}, rules, epochs(1, 7)), ElementsAre(4, 5, 6));
}

TEST(Judge, BeforeTheStartStepNothingStops) {
  for (const char* name : {"median", "percentile", "patience", "threshold", "curve"}) {
    api::EarlyStopping rules = rule(name);
    rules.start_step = 3;
    rules.min_trials = rules.patience = 1;
    rules.threshold = 0.1;
    expect_verdicts(problem_with(epochs(1, 9)), rules,
                    {{0, 2, 0.05, kGo}, {1, 1, 0.9, kGo}, {1, 2, 0.9, kGo}});
  }
}

// The best 50 % of four others with bests 0.1 0.2 0.3 0.4 reach 0.25.
TEST(Percentile, AHandWorkedTable) {
  api::EarlyStopping rules = rule("percentile");
  rules.percentile = 50;
  rules.min_trials = 3;
  expect_verdicts(problem_with(epochs(1, 9)), rules,
                  {
                      {0, 1, 0.4, kGo},
                      {1, 1, 0.3, kGo},
                      {2, 1, 0.2, kGo},  // two others, three are needed
                      {3, 1, 0.1, kGo},  // three others: the limit is 0.3
                      {4, 1, 0.26, kStop},
                      {5, 1, 0.25, kGo},  // 0.1 0.2 0.26 0.3 0.4: the limit is 0.26
                      {3, 2, 0.9, kGo},   // no other trial has come to step 2
                  });
}

TEST(Percentile, ComparesBestsAndStopsNonFiniteValues) {
  api::EarlyStopping rules = rule("percentile");
  rules.percentile = 100;
  rules.min_trials = 1;
  expect_verdicts(problem_with(epochs(1, 9), api::Direction::kMaximize), rules,
                  {{0, 1, 0.5, kGo},
                   {0, 2, 0.1, kGo},
                   {1, 1, 0.6, kGo},
                   {1, 2, 0.0, kGo},  // its best, 0.6, is above 0.5
                   {2, 1, std::nullopt, kStop},
                   {3, 1, -1.0, kGo}});  // trial 2 has no value: the limit is the worst
}

TEST(Patience, CountsReportsSinceTheBest) {
  api::EarlyStopping rules = rule("patience");
  rules.patience = 2;
  expect_verdicts(problem_with(epochs(1, 20)), rules,
                  {
                      {0, 1, 0.5, kGo},
                      {0, 2, 0.6, kGo},
                      {0, 3, 0.4, kGo},  // better: the count begins again
                      {1, 1, 0.1, kGo},  // does not concern trial 0
                      {0, 4, 0.4, kGo},  // as good is no improvement
                      {0, 5, 0.45, kStop},
                      {2, 1, std::nullopt, kGo},
                      {2, 2, std::nullopt, kStop},
                  });
}

TEST(Threshold, IsInTheUnitsOfTheObjective) {
  api::EarlyStopping rules = rule("threshold");
  rules.threshold = 0.2;
  expect_verdicts(problem_with(epochs(1, 9)), rules,
                  {{0, 1, 0.2, kGo}, {0, 2, 0.21, kStop}, {1, 1, std::nullopt, kStop}});
  expect_verdicts(problem_with(epochs(1, 9), api::Direction::kMaximize), rules,
                  {{0, 1, 0.2, kGo}, {0, 2, 0.19, kStop}, {1, 1, 0.9, kGo}});
}

// Reports a curve until it is stopped. Returns the step of the stop; 0 = never.
std::int64_t stopped_at(const Problem& problem, const api::EarlyStopping& rules, History& history,
                        const std::function<double(std::int64_t)>& value) {
  const auto trial = static_cast<std::int64_t>(history.trials.size());
  history.trials.push_back(Json::object());
  for (std::int64_t step = 1; step < problem.resource.max; ++step) {
    history.events.push_back(fact(trial, api::FactKind::kRung, step, value(step)));
    if (judge(problem, rules, history, trial).verdict == kStop) return step;
  }
  const std::int64_t last = problem.resource.max;
  history.events.push_back(fact(trial, api::FactKind::kResult, last, value(last)));
  return 0;
}

TEST(Curve, StopsTrialsThatWillNotEndAmongTheBest) {
  const Problem problem = problem_with(epochs(1, 30));
  const api::EarlyStopping rules = rule("curve");
  const auto decay = [](double end, double rate) {
    return [=](std::int64_t step) { return end + std::exp(-rate * static_cast<double>(step)); };
  };
  History history;
  for (const double end : {0.5, 0.3, 0.2, 0.4, 0.6}) {
    EXPECT_EQ(stopped_at(problem, rules, history, decay(end, 0.3)), 0);  // nothing to compare with
  }
  const std::int64_t hopeless = stopped_at(problem, rules, history, decay(0.9, 0.3));
  EXPECT_GT(hopeless, 2);
  EXPECT_LT(hopeless, 20);
  EXPECT_EQ(stopped_at(problem, rules, history, decay(0.1, 0.3)), 0);
  EXPECT_EQ(stopped_at(problem, rules, history, decay(0.05, 0.1)), 0);  // slow, but it gets there
}

// The ends of other curves count more than extrapolations of them.
TEST(Curve, IsCarefulWhereForecastsWereWrong) {
  const Problem problem = problem_with(epochs(1, 30));
  const auto flat = [](double end) {
    return [end](std::int64_t step) { return end + 1 / static_cast<double>(step); };
  };
  const auto late = [](double end) {  // nothing is learnt before step 20
    return [end](std::int64_t step) { return step < 20 ? 1.5 : end; };
  };
  History foreseen;
  History sudden;
  for (const double end : {0.5, 0.3, 0.2, 0.4, 0.6}) {
    EXPECT_EQ(stopped_at(problem, rule("curve"), foreseen, flat(end)), 0);
    EXPECT_EQ(stopped_at(problem, rule("curve"), sudden, late(end)), 0);
  }
  EXPECT_GT(stopped_at(problem, rule("curve"), foreseen, late(0.1)), 0);
  EXPECT_EQ(stopped_at(problem, rule("curve"), sudden, late(0.1)), 0);
}

TEST(Curve, TheNumberOfBestTrialsIsASetting) {
  const Problem problem = problem_with(epochs(1, 30), api::Direction::kMaximize);
  api::EarlyStopping rules = rule("curve");
  const auto rise = [](double end) {
    return [end](std::int64_t step) { return end - 1 / static_cast<double>(step); };
  };
  History history;
  for (const double end : {0.1, 0.2, 0.3, 0.7, 0.8, 0.9}) {
    stopped_at(problem, rule("asha"), history, rise(end));
  }
  History other = history;
  EXPECT_GT(stopped_at(problem, rules, history, rise(0.5)), 0);
  rules.top = 4;
  EXPECT_EQ(stopped_at(problem, rules, other, rise(0.5)), 0);
}

TEST(Curve, TheReasonShowsTheExpectation) {
  const Problem problem = problem_with(epochs(1, 9));
  api::EarlyStopping rules = rule("curve");
  rules.min_trials = 1;
  History history;
  history.trials.assign(2, Json::object());
  history.events = {fact(0, api::FactKind::kResult, 9, 0.25),
                    fact(1, api::FactKind::kRung, 1, 0.5)};
  EXPECT_THAT(judge(problem, rules, history, 1).reason,
              HasSubstr("better than the best (0.25) with a probability of "));
  rules.min_trials = 2;
  EXPECT_EQ(judge(problem, rules, history, 1).reason,
            "curve: rung 0 (step 1): only 1 of 2 other trials have come to their end");
}

TEST(Curve, CopesWithAnyValue) {
  const Problem problem = problem_with(epochs(1, 9));
  api::EarlyStopping rules = rule("curve");
  rules.min_trials = 1;
  for (const double value : {0.0, 1e300, -1e300, 5e-324}) {
    History history;
    history.trials.assign(2, Json::object());
    history.events = {fact(0, api::FactKind::kResult, 9, -value)};
    for (std::int64_t step = 1; step < 9; ++step) {
      history.events.push_back(fact(1, api::FactKind::kRung, step, step % 2 == 0 ? value : -value));
      EXPECT_FALSE(judge(problem, rules, history, 1).reason.empty());
    }
  }
}

}  // namespace
}  // namespace fettle::search
