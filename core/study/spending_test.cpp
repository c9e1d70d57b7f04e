// The spending of a Study, and the estimate of its remaining time.
#include "core/study/spending.h"

#include <gtest/gtest.h>

#include "core/facts/run_records.h"
#include "core/facts/trial_cost.h"
#include "core/plan.h"
#include "core/study/ledger.h"
#include "core/study/study_plan.h"
#include "core/testing/fake_sampler.h"
#include "core/trial/trial_plan.h"

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

TEST(Spending, TheRemainingBudgetIsDividedByTheSlots) {
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

TEST(Spending, ABudgetThatLastsForAgesWakesNobodyBefore) {
  constexpr std::int64_t kNow = 1'000'000;
  api::Study study;
  study.metadata.name = "digits";
  study.spec.objectives.emplace_back().metric = "accuracy";
  study.spec.trial.gpu.emplace().fraction = 1e-7;
  study.spec.budget.gpu_hours = 1e9;
  auto trial = std::make_shared<api::Trial>();
  trial->metadata.name = "digits-0";
  trial->status.phase = api::TrialPhase::kRunning;
  api::RunRecord& run = trial->status.runs.emplace_back();
  run.gpus = 1e-7;
  run.started_ms = run.running_ms = kNow - 1'000;
  FakeSampler sampler(100);
  const StudyPlan plan = plan_study({study, {trial}, Capacity{.trials = 1}}, sampler, kNow);
  ASSERT_TRUE(plan.wake_at_ms.has_value());
  EXPECT_GT(*plan.wake_at_ms, kNow);
}

// A Study whose workers have two GPUs each, and its only trial.
Spending spending_with(const api::RunRecord& run, std::int64_t now_ms) {
  api::Study study;
  study.spec.trial.gpu.emplace().count = 2;
  api::Trial trial;
  trial.status.runs = {run};
  return Ledger(study, {std::make_shared<api::Trial>(trial)}).spending(study, now_ms);
}

TEST(Spending, GpuHoursCountTheWorkersThatRan) {
  constexpr std::int64_t kHour = 3'600'000;
  constexpr std::int64_t kBegan = kHour;
  const struct {
    const char* what;
    std::int64_t workers;  // started with
    std::vector<api::Resize> resizes;
    double gpu_hours;  // after three hours, which is now
    double gpus_in_use;
  } cases[] = {
      {"always 4", 4, {}, 24, 8},
      {"an hour alone, then 4", 1, {{kBegan + kHour, 4}}, 2 + 16, 8},
      {"from 4 to 2 after two hours", 4, {{kBegan + 2 * kHour, 2}}, 16 + 4, 4},
      {"3 of 4 while one was made again",
       4,
       {{kBegan + kHour, 3}, {kBegan + 2 * kHour, 4}},
       8 + 6 + 8,
       8},
      {"evicted, and still without a node", 1, {{kBegan + kHour, 0}}, 2, 0},
  };
  for (const auto& c : cases) {
    api::RunRecord run;
    run.workers = c.workers;
    run.started_ms = run.running_ms = kBegan;
    run.resizes = c.resizes;
    const Spending now = spending_with(run, kBegan + 3 * kHour);
    EXPECT_DOUBLE_EQ(now.gpu_hours, c.gpu_hours) << c.what;
    EXPECT_DOUBLE_EQ(now.gpus_in_use, c.gpus_in_use) << c.what;
    run.outcome = api::Outcome::kSucceeded;
    run.ended_ms = kBegan + 3 * kHour;
    EXPECT_DOUBLE_EQ(spending_with(run, kBegan + 9 * kHour).gpu_hours, c.gpu_hours) << c.what;
  }
}

// The gang may hold GPUs for a few minutes, but that is not the trial's doing.
TEST(Spending, AGangThatHasNotGatheredCostsNothing) {
  api::RunRecord waiting;
  waiting.workers = 4;
  waiting.started_ms = 1'000;
  EXPECT_EQ(spending_with(waiting, 9'000'000).gpu_hours, 0);
  EXPECT_EQ(spending_with(waiting, 9'000'000).gpus_in_use, 0);
}

// Parts of a GPU count exactly, over resizes and over runs with different parts: the second run was
// given more memory than the first.
TEST(Spending, PartsOfAGpuCountExactly) {
  constexpr std::int64_t kHour = 3'600'000;
  api::Study study;
  study.spec.trial.gpu.emplace().memory = 20e9;
  auto trial = std::make_shared<api::Trial>();
  api::TrialSpec spec;
  api::RunRecord& first = append_run(trial->status, spec, kHour);
  first.running_ms = kHour;
  first.gpus = 0.25;
  set_workers(first, 2, 3 * kHour);
  first.outcome = api::Outcome::kOutOfMemory;
  first.ended_ms = 4 * kHour;  // 2 hours with one worker, 1 with two: 4 worker-hours
  EXPECT_DOUBLE_EQ(Ledger(study, {trial}).spending(study, 9 * kHour).gpu_hours, 1);

  api::RunRecord& second = append_run(trial->status, spec, 5 * kHour);
  second.running_ms = 5 * kHour;
  second.gpus = 0.5;
  const Spending now = Ledger(study, {trial}).spending(study, 8 * kHour);
  EXPECT_DOUBLE_EQ(now.gpu_hours, 1 + 1.5);
  EXPECT_DOUBLE_EQ(now.gpus_in_use, 0.5);
  EXPECT_DOUBLE_EQ(cost_of(study, *trial, 8 * kHour), 2.5 * 3600);
}

TEST(Spending, TimeTakenByAQueueIsChargedInPartsOfAGpu) {
  api::RunRecord run;
  run.gpus = 0.25;
  carry_seconds(run, 400);
  EXPECT_EQ(gpu_seconds(run, 0), 100);
  EXPECT_EQ(run.earlier_seconds, 400);
}

TEST(Spending, TimeThatAQueueTookAwayCountsForTheWallTime) {
  api::Study study;
  api::Trial trial;
  const auto active = [&](std::int64_t now_ms) {
    return Ledger(study, {std::make_shared<api::Trial>(trial)})
        .spending(study, now_ms)
        .active_seconds;
  };
  api::RunRecord first;
  first.workers = 2;
  first.started_ms = 100'000;
  first.earlier_seconds = 40;  // it ran from 110 s to 130 s, and waits
  trial.status.runs = {first};
  EXPECT_EQ(active(140'000), 20);
  first.running_ms = 200'000;
  first.ended_ms = 205'000;
  first.outcome = api::Outcome::kDisrupted;
  api::RunRecord second = first;
  second.run = 1;
  second.started_ms = 300'000;
  second.running_ms = 0;
  second.outcome.reset();
  second.earlier_seconds = 40 + 10 + 60;  // it ran for 30 s, and waits
  trial.status.runs = {first, second};
  EXPECT_EQ(active(400'000), 20 + 5 + 30);
  trial.status.runs = {second};
  EXPECT_EQ(active(400'000), 20 + 5 + 30) << "the first record was pruned";
}

TEST(Spending, ARunThatItsQueueEndsIsChargedOnce) {
  api::Study study;
  study.metadata.name = "digits";
  study.spec.objectives.emplace_back().metric = "accuracy";
  for (const bool was_seen_waiting : {false, true}) {
    api::Trial trial;
    trial.metadata.name = "digits-0";
    trial.status.phase = api::TrialPhase::kRunning;
    api::RunRecord& record = trial.status.runs.emplace_back();
    record.started_ms = 100'000;
    record.running_ms = 110'000;
    const auto observe = [&](const core::Run& run, std::int64_t now_ms) {
      const std::vector<core::Run> runs = {run};
      const TrialPlan plan = plan_trial({study, trial, runs}, now_ms);
      for (const TrialAction& action : plan.actions) {
        if (const auto* update = std::get_if<UpdateTrialStatus>(&action)) {
          trial.status = update->status;
        }
      }
    };
    core::Run run;
    run.queued = true;
    run.reason = "the Job is suspended";
    if (was_seen_waiting) observe(run, 130'000);
    run.state = RunState::kExited;
    run.outcome = api::Outcome::kDisrupted;
    run.started_ms = 110'000;
    run.ended_ms = 130'000;
    observe(run, was_seen_waiting ? 140'000 : 130'000);
    ASSERT_EQ(trial.status.runs.size(), 2U) << "the next run waits in the queue";
    EXPECT_EQ(trial.status.runs.front().reason, api::kPreempted);
    EXPECT_DOUBLE_EQ(trial.status.runs.back().earlier_seconds, 20) << was_seen_waiting;
  }
}

}  // namespace

}  // namespace fettle::core
