// Times of reports: a table of a trainer's events and the times at which it sends.
#include "trainer/reporter/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fettle::trainer {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// At `at_ms` the training reports `step`; step < 0: it ends.
struct Said {
  std::int64_t at_ms;
  std::int64_t step;
  bool final_result = false;
};

struct Case {
  std::string name;
  std::vector<std::int64_t> rungs;
  std::vector<Said> said;
  std::int64_t fails_until_ms;  // the server refuses until then
  std::vector<std::int64_t> sent_ms;
};

// Times at which a reporter that checks every 10 ms would send, with immediate answers.
std::vector<std::int64_t> play(const Case& c) {
  constexpr std::int64_t kEnd = 60'000;
  Pace pace(c.rungs, 5'000);
  std::vector<std::int64_t> sent;
  std::size_t next = 0;
  for (std::int64_t now = 0; now < kEnd; now += 10) {
    for (; next < c.said.size() && c.said[next].at_ms <= now; ++next) {
      const Said& said = c.said[next];
      said.step < 0 ? pace.hurry() : pace.reported(said.step, said.final_result);
    }
    if (pace.due_ms().value_or(kNever) > now) continue;
    pace.begin(now);
    sent.push_back(now);
    now < c.fails_until_ms ? pace.failed(now) : pace.delivered(now);
  }
  return sent;
}

class PaceTable : public testing::TestWithParam<Case> {};

TEST_P(PaceTable, SendsWhenItShould) { EXPECT_EQ(play(GetParam()), GetParam().sent_ms); }

INSTANTIATE_TEST_SUITE_P(
    , PaceTable,
    testing::Values(
        Case{"TheFirstReportGoesAtOnce", {}, {{100, 1}}, 0, {100}},
        Case{"NothingIsSentTwice", {}, {{0, 1}}, 0, {0}},
        Case{"QuickEpochsAreHeldBack", {}, {{0, 1}, {1000, 2}, {2000, 3}}, 0, {0, 5000}},
        Case{"SlowEpochsAreNot", {}, {{0, 1}, {7000, 2}, {14000, 3}}, 0, {0, 7000, 14000}},
        Case{"ARungGoesAtOnce", {3}, {{0, 1}, {1000, 2}, {2000, 3}}, 0, {0, 2000}},
        Case{"AStepPastARungIsThatRung", {3}, {{0, 2}, {1000, 4}, {2000, 5}}, 0, {0, 1000, 6000}},
        Case{"EachRungCountsOnce", {1}, {{0, 1}, {1000, 1}}, 0, {0, 5000}},
        Case{"TheFinalReportGoesAtOnce", {}, {{0, 1}, {1000, 2, true}}, 0, {0, 1000}},
        Case{"TheLastReportOfAStoppedTraining", {}, {{0, 1}, {1000, 2}, {1500, -1}}, 0, {0, 1500}},
        Case{"AnEndWithNothingNewSendsNothing", {}, {{0, 1}, {1500, -1}}, 0, {0}},
        Case{"FailuresBackOff", {}, {{0, 1}}, 2000, {0, 250, 750, 1750, 3750}},
        Case{"AnUrgentReportWaitsForTheBackOffToo", {2}, {{0, 1}, {300, 2}}, 500, {0, 250, 750}},
        Case{"AfterAFailureTheIntervalCountsFromTheAttempt",
             {},
             {{0, 1}, {1000, 2}},
             200,
             {0, 250, 5250}},
        Case{"BackOffIsBounded",
             {},
             {{0, 1}},
             kNever,
             {0, 250, 750, 1750, 3750, 7750, 15750, 25750, 35750, 45750, 55750}}),
    [](const auto& test) { return test.param.name; });

// The pause before the next ordinary report, after an answer that took `took_ms`.
std::int64_t pause_after(Pace& pace, std::int64_t took_ms, bool throttled = false) {
  static std::int64_t now_ms = 0;
  now_ms += 10'000'000;
  pace.reported(1, false);
  pace.begin(now_ms);
  pace.delivered(now_ms + took_ms, throttled);
  pace.reported(2, false);
  return *pace.due_ms() - now_ms;
}

TEST(Pace, ASlowApiServerGetsHalfAsManyReports) {
  Pace pace({}, 5'000, 60'000);
  EXPECT_EQ(pause_after(pace, kSlowAnswerMs), 5'000);
  EXPECT_EQ(pause_after(pace, kSlowAnswerMs + 1), 10'000);
  EXPECT_EQ(pause_after(pace, 0, /*throttled=*/true), 20'000) << "429, then it was delivered";
  for (int i = 0; i < 10; ++i) (void)pause_after(pace, 0, /*throttled=*/true);
  EXPECT_EQ(pause_after(pace, 0, /*throttled=*/true), 60'000) << "or the trial would look hung";
  EXPECT_EQ(pause_after(pace, 10), 30'000) << "each quick answer takes one step back";
  for (int i = 0; i < 10; ++i) (void)pause_after(pace, 10);
  EXPECT_EQ(pause_after(pace, 10), 5'000);
}

TEST(Pace, AHeartbeatBoundsTheIntervalOfManyTrials) {
  Pace pace({}, report_interval_ms(6'000), 20'000);
  EXPECT_EQ(pause_after(pace, 10), 20'000);
}

TEST(Pace, ManyTrialsReportMoreSeldom) {
  EXPECT_EQ(report_interval_ms(1), 5'000);
  EXPECT_EQ(report_interval_ms(250), 5'000);
  EXPECT_EQ(report_interval_ms(6'000), 120'000);
}

}  // namespace
}  // namespace fettle::trainer
