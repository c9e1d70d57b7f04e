// What a Study has spent, and how long it still takes.
#include "core/spending.h"

#include <gtest/gtest.h>

#include "core/fake_sampler.h"
#include "core/plan.h"

namespace fettle::core {
namespace {

api::TrialPtr completed_trial(std::int64_t began_ms, std::int64_t ended_ms) {
  api::Trial trial;
  trial.metadata.name = "digits-0";
  trial.status.phase = api::TrialPhase::kCompleted;
  api::RunRecord run;
  run.started_ms = began_ms;
  run.running_ms = began_ms;
  run.ended_ms = ended_ms;
  run.outcome = api::Outcome::kSucceeded;
  trial.status.runs = {run};
  return std::make_shared<api::Trial>(trial);
}

TEST(Spending, WhatRemainsIsDividedByTheSlotsThatThereAre) {
  api::Study study;
  study.metadata.name = "digits";
  study.spec.objectives.emplace_back().metric = "accuracy";
  study.spec.budget.trials = 4;
  study.spec.budget.parallelism = 4;
  FakeSampler sampler(100);
  const std::vector<api::TrialPtr> trials = {completed_trial(1'000, 11'000)};
  const StudyPlan plan = plan_study({study, trials, Capacity{.trials = 1}}, sampler, 11'000);
  const api::StudyStatus* status = nullptr;
  for (const StudyAction& action : plan.actions) {
    if (const auto* update = std::get_if<UpdateStudyStatus>(&action)) status = &update->status;
  }
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(status->eta_seconds, 30) << "three more trials of ten seconds, one after the other";
}

}  // namespace
}  // namespace fettle::core
