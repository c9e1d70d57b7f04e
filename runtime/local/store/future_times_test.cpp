// A clock that was fast before the Study was resumed holds up nothing now.
#include "runtime/local/store/future_times.h"

#include <gtest/gtest.h>

namespace fettle::local {
namespace {

constexpr std::int64_t kNow = 1'000'000;
constexpr std::int64_t kFast = 10'800'000;  // three hours

TEST(FutureTimes, OfAStudyAreNoLaterThanNow) {
  api::Study study;
  study.metadata.created_ms = kNow - 5;
  study.status.updated_ms = kNow + kFast;
  study.status.started_ms = kNow + 7;
  study.status.conditions.push_back({"Running", true, "Searching", "", kNow + 9});
  EXPECT_EQ(clamp_future_times(study, kNow), kFast);
  EXPECT_EQ(study.metadata.created_ms, kNow - 5);
  EXPECT_EQ(study.status.updated_ms, kNow);
  EXPECT_EQ(study.status.started_ms, kNow);
  EXPECT_EQ(study.status.ended_ms, 0);
  EXPECT_EQ(study.status.conditions[0].since_ms, kNow);
  EXPECT_EQ(clamp_future_times(study, kNow), 0);
}

TEST(FutureTimes, ARunKeepsItsLength) {
  api::Trial trial;
  api::RunRecord run;
  run.started_ms = kNow + kFast - 700;
  run.running_ms = kNow + kFast - 600;
  run.ended_ms = kNow + kFast;
  run.resizes.push_back({kNow + kFast - 100, 2});
  trial.status.runs.push_back(run);
  trial.status.report.emplace().at_ms = kNow + kFast;
  EXPECT_EQ(clamp_future_times(trial, kNow), kFast);
  const api::RunRecord& moved = trial.status.runs[0];
  EXPECT_EQ(moved.started_ms, kNow - 700);
  EXPECT_EQ(moved.running_ms, kNow - 600);
  EXPECT_EQ(moved.ended_ms, kNow);
  EXPECT_EQ(moved.resizes[0].at_ms, kNow - 100);
  EXPECT_EQ(trial.status.report->at_ms, kNow);
}

// A run that never began, or still runs, has times of 0, and these stay.
TEST(FutureTimes, WhatIsNoTimeStaysNone) {
  api::Trial trial;
  trial.status.runs.emplace_back().started_ms = kNow + 50;
  EXPECT_EQ(clamp_future_times(trial, kNow), 50);
  EXPECT_EQ(trial.status.runs[0].started_ms, kNow);
  EXPECT_EQ(trial.status.runs[0].running_ms, 0);
  EXPECT_EQ(trial.status.runs[0].ended_ms, 0);
}

// Judgements depend on which facts were learnt in the same reconcile, and on the order of
// reconciles.
TEST(FutureTimes, FactsKeepTheirOrderAndStayApart) {
  api::Trial trial;
  for (const std::int64_t at_ms : {kNow - 9, kNow + 10, kNow + 10, kNow + kFast}) {
    api::Fact fact;
    fact.at_ms = at_ms;
    trial.status.facts.push_back(fact);
  }
  EXPECT_EQ(clamp_future_times(trial, kNow), kFast);
  const auto& facts = trial.status.facts;
  EXPECT_EQ(facts[0].at_ms, kNow - 9);
  EXPECT_EQ(facts[1].at_ms, kNow - 1);
  EXPECT_EQ(facts[2].at_ms, kNow - 1);
  EXPECT_EQ(facts[3].at_ms, kNow);
}

}  // namespace
}  // namespace fettle::local
