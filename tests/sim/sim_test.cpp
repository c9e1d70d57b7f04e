// Laws that hold whatever happens to the controllers: no trial is lost, none runs twice, the search
// is the same, and there is silence when it is over (DESIGN sections 1 and 10).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/trial/display.h"
#include "core/conditions.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

using api::FactKind;
using api::TrialPhase;

int count_facts(const api::Trial& trial, FactKind kind) {
  int count = 0;
  for (const api::Fact& fact : trial.status.facts) count += fact.kind == kind ? 1 : 0;
  return count;
}

// Each trial ended once, and once more for each promotion, with one event for each end, and has a
// result if it reached the last step.
void expect_ended_once(Simulation& simulation) {
  const std::int64_t last_step = simulation.study().spec.resource.max;
  for (const api::TrialPtr& trial : simulation.trials()) {
    SCOPED_TRACE(trial->metadata.name);
    EXPECT_TRUE(api::is_terminal(trial->status.phase));
    const bool completed = trial->status.phase == TrialPhase::kCompleted;
    const bool has_result = completed && trial->spec.until_step == last_step;
    const auto ends = static_cast<int>(1 + trial->spec.search.promotions.size());
    EXPECT_EQ(count_facts(*trial, FactKind::kResult), has_result ? 1 : 0);
    EXPECT_EQ(count_facts(*trial, FactKind::kStopped) + count_facts(*trial, FactKind::kFailed),
              has_result ? ends - 1 : ends);
    // A trial that was asked to stop may have reached its end all the same.
    EXPECT_LE(simulation.runs().finished(trial->metadata.name), ends);
    EXPECT_GE(simulation.runs().finished(trial->metadata.name), completed ? ends : 0);
  }
}

std::string reason_of(const api::Study& study, const std::string& type) {
  const api::StatusCondition* condition = core::find_condition(study.status.conditions, type);
  return condition == nullptr || !condition->status ? "" : condition->reason;
}

TEST(Simulation, AStudyRunsToItsEnd) {
  Simulation simulation(digits_study(), all_finish);
  simulation.run_to_end();
  const api::Study study = simulation.study();
  EXPECT_EQ(reason_of(study, "Succeeded"), "TrialsDone");
  EXPECT_EQ(study.status.trials.created, 12);
  EXPECT_EQ(study.status.trials.completed, 12);
  EXPECT_EQ(study.status.progress, "12/12");
  EXPECT_EQ(study.status.display.state, "Succeeded");
  EXPECT_EQ(study.status.display.best, api::short_numbers(study.status.best[0].objectives));
  EXPECT_EQ(study.status.display.eta, "");
  ASSERT_EQ(study.status.best.size(), 1u);
  EXPECT_EQ(simulation.store().trials_created(), 12);
  EXPECT_EQ(simulation.runs().started(), 12);
  EXPECT_EQ(simulation.runs().most_at_once(), 4);
  // Three rounds of nine steps of a good second each.
  EXPECT_GT(study.status.active_seconds, 27);
  EXPECT_LT(study.status.active_seconds, 36);
  expect_ended_once(simulation);
}

TEST(Simulation, TheStatusIsWrittenAtMostOnceASecondButForTheEnd) {
  Simulation simulation(digits_study(), all_finish);
  simulation.run_to_end();
  const std::vector<std::int64_t>& times = simulation.store().status_times();
  ASSERT_GT(times.size(), 5u);
  for (std::size_t i = 1; i + 1 < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], 1'000);
}

TEST(Simulation, BadDaysAreSurvived) {
  Simulation simulation(digits_study(), bad_days);
  simulation.run_to_end();
  const api::TrialCounts counts = simulation.study().status.trials;
  EXPECT_EQ(counts.completed, 10);
  EXPECT_EQ(counts.failed, 2);  // trials 3 and 10 fail three times each
  EXPECT_EQ(simulation.trials()[3]->status.runs.size(), 3u);
  EXPECT_EQ(simulation.trials()[4]->status.runs.front().outcome, api::Outcome::kHung);
  EXPECT_EQ(simulation.trials()[2]->status.runs.size(), 4u);  // disruptions are free
  expect_ended_once(simulation);
}

TEST(Simulation, EveryObjectSurvivesItsDocument) {
  api::Study study = digits_study();
  study.spec.early_stopping = api::EarlyStopping{.name = api::StoppingKind::kAsha};
  Simulation simulation(study, bad_days);
  simulation.store().check_documents();
  simulation.run_to_end();
  expect_ended_once(simulation);
}

TEST(Simulation, AshaStopsPoorTrials) {
  api::Study study = digits_study();
  study.spec.budget.trials = 27;
  study.spec.early_stopping = api::EarlyStopping{.name = api::StoppingKind::kAsha};
  Simulation simulation(study, all_finish);
  simulation.run_to_end();
  const api::TrialCounts counts = simulation.study().status.trials;
  EXPECT_GT(counts.stopped, 9);
  EXPECT_GT(counts.completed, 0);
  EXPECT_EQ(counts.stopped + counts.completed, 27);
  expect_ended_once(simulation);
}

TEST(Simulation, TrialsPauseAtRungsAndTheBestGoOnFromTheirCheckpoints) {
  api::Study study = digits_study();
  study.spec.budget.trials = 12;
  study.spec.algorithm.name = api::AlgorithmKind::kHyperband;
  Simulation simulation(study, all_finish);
  simulation.run_to_end();
  const api::StudyStatus status = simulation.study().status;
  EXPECT_EQ(status.trials.created, 12);
  EXPECT_GT(status.trials.stopped, 4);
  EXPECT_GT(status.trials.completed, 0);
  EXPECT_EQ(status.best.at(0).step, 9);
  bool climbed = false;
  for (const api::TrialPtr& trial : simulation.trials()) {
    const std::vector<api::RunRecord>& runs = trial->status.runs;
    ASSERT_EQ(runs.size(), 1 + trial->spec.search.promotions.size());
    ASSERT_EQ(runs.back().until_step, trial->spec.until_step);
    climbed |= runs.size() == 3;
    for (std::size_t i = 1; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].last_step, runs[i].until_step) << "no step is taken twice";
      EXPECT_EQ(runs[i].until_step, trial->spec.search.promotions[i - 1].until_step);
    }
  }
  EXPECT_TRUE(climbed) << "one came from the first rung to the last";
  EXPECT_EQ(simulation.runs().most_at_once(), study.spec.budget.parallelism);
}

TEST(Simulation, TheLeadersAreRunAgainWithOtherSeeds) {
  api::Study study = digits_study();
  study.spec.replicates = api::Replicates{.leaders = 2, .runs = 3};
  Simulation simulation(study, all_finish);
  simulation.store().check_documents();
  simulation.run_to_end();
  const api::StudyStatus status = simulation.study().status;
  EXPECT_EQ(status.trials.created, 18);
  EXPECT_EQ(status.trials.replicates, 6);
  EXPECT_EQ(status.progress, "18/18");
  EXPECT_EQ(status.best.at(0).replicates->runs, 3);
  const std::vector<api::TrialPtr> trials = simulation.trials();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const std::string& repeated = trials[i]->spec.search.replicates;
    EXPECT_EQ(repeated.empty(), i < 12) << "after all others";
    if (i < 14) continue;
    EXPECT_EQ(repeated, trials[i - 2]->spec.search.replicates) << "by turns";
  }
  EXPECT_EQ(simulation.runs().most_at_once(), 4);
  expect_ended_once(simulation);
}

TEST(Simulation, APopulationKeepsItsSizeAndItsBest) {
  api::Study study = digits_study();
  study.spec.budget.trials = 8;
  study.spec.algorithm.name = api::AlgorithmKind::kPbt;
  study.spec.algorithm.interval = 3;
  Simulation simulation(study, all_finish);
  simulation.run_to_end();
  const api::StudyStatus status = simulation.study().status;
  EXPECT_GT(status.trials.created, 8) << "some took over";
  EXPECT_EQ(status.trials.completed, 8);
  EXPECT_EQ(status.trials.stopped, status.trials.created - 8);
  EXPECT_EQ(status.best.at(0).step, 9);
  const std::vector<api::TrialPtr> trials = simulation.trials();
  for (const api::TrialPtr& trial : trials) {
    const std::string& replaces = trial->spec.search.replaces;
    ASSERT_EQ(trial->spec.parent.has_value(), !replaces.empty());
    if (!trial->spec.parent) continue;
    const auto replaced = std::find_if(trials.begin(), trials.end(), [&](const auto& other) {
      return other->metadata.name == replaces;
    });
    ASSERT_NE(replaced, trials.end());
    EXPECT_EQ((*replaced)->spec.stop->reason, "Replaced");
    EXPECT_EQ(trial->status.runs.front().until_step, trial->spec.parent->step + 3);
    EXPECT_GT(trial->status.facts.front().step, trial->spec.parent->step);
  }
}

// ---- What a trial costs ------------------------------------------------------------------------

// Returns writes per trial of a Study whose trials take one step; writes of the Study's status, at
// most one a second, do not count.
std::int64_t writes_per_trial(Simulation& simulation) {
  simulation.run_to_end();
  const auto statuses = static_cast<std::int64_t>(simulation.store().status_times().size());
  const std::int64_t writes = simulation.faults().writes() - statuses;
  EXPECT_EQ(simulation.study().status.trials.completed, 12);
  EXPECT_EQ(writes % 12, 0) << "all trials cost the same";
  return writes / 12;
}

api::Study one_step_study() {
  api::Study study = digits_study();
  study.spec.resource = {"epoch", 1, 1};
  return study;
}

TEST(Simulation, ATrialTakesFiveWrites) {
  Simulation simulation(one_step_study(), all_finish);
  EXPECT_EQ(writes_per_trial(simulation), 5) << "create, start, running, ended, remove";
}

TEST(Simulation, ATrialThatEndsBeforeItIsSeenRunningTakesFour) {
  Simulation simulation(one_step_study(), all_finish);
  simulation.runs().lose_events();  // only a resync sees the change
  EXPECT_EQ(writes_per_trial(simulation), 4) << "create, start, ended, remove";
}

// ---- Crashes -----------------------------------------------------------------------------------

struct CrashCase {
  std::string name;
  api::Study study;
  Scripts scripts;
  bool order;  // the whole order of events is the same, not only their set
};

std::vector<CrashCase> crash_cases() {
  // One trial at a time: then a crash shifts times but not the order, and every decision that a
  // search derives from results must be the same.
  api::Study in_turn = digits_study();
  in_turn.spec.budget.parallelism = 1;
  in_turn.spec.budget.trials = 8;
  in_turn.spec.algorithm.name = api::AlgorithmKind::kTpe;
  in_turn.spec.algorithm.startup_trials = 3;
  in_turn.spec.early_stopping =
      api::EarlyStopping{.name = api::StoppingKind::kMedian, .min_trials = 2};
  // Trials that pause and are promoted.
  api::Study climbing = in_turn;
  climbing.spec.early_stopping.reset();
  climbing.spec.algorithm.name = api::AlgorithmKind::kBohb;
  // Trials that take over from others.
  api::Study population = in_turn;
  population.spec.early_stopping.reset();
  population.spec.algorithm = {};
  population.spec.algorithm.name = api::AlgorithmKind::kPbt;
  population.spec.algorithm.interval = 3;
  population.spec.budget.trials = 4;
  // Leaders that are run again, one after the other and side by side.
  api::Study repeating = in_turn;
  repeating.spec.budget.trials = 4;
  repeating.spec.replicates = api::Replicates{.leaders = 2, .runs = 2};
  api::Study climbing_again = climbing;
  climbing_again.spec.replicates = repeating.spec.replicates;
  api::Study repeating_side_by_side = digits_study();
  repeating_side_by_side.spec.budget.trials = 5;
  repeating_side_by_side.spec.replicates = api::Replicates{.leaders = 3, .runs = 2};
  // Results of earlier Studies are recorded before the first trial.
  api::Study warm = in_turn;
  warm.spec.warm_start =
      api::WarmStart{.studies = {"gone"}, .map = {}, .points = {Json::object({{"x", 0.5}})}};
  // Side by side, parameters depend on the index alone.
  api::Study side_by_side = digits_study();
  side_by_side.spec.budget.trials = 8;
  return {{"InTurn", in_turn, all_finish, true},
          {"InTurnOnBadDays", in_turn, bad_days, true},
          {"Climbing", climbing, all_finish, true},
          {"ClimbingOnBadDays", climbing, bad_days, true},
          {"Population", population, all_finish, true},
          {"PopulationOnBadDays", population, bad_days, true},
          {"Repeating", repeating, all_finish, true},
          {"RepeatingOnBadDays", repeating, bad_days, true},
          {"ClimbingAgain", climbing_again, all_finish, true},
          {"RepeatingSideBySide", repeating_side_by_side, all_finish, false},
          {"RepeatingSideBySideOnBadDays", repeating_side_by_side, bad_days, false},
          {"Warm", warm, all_finish, true},
          {"SideBySide", side_by_side, all_finish, false},
          {"SideBySideOnBadDays", side_by_side, bad_days, false}};
}

class CrashAtEveryWrite : public testing::TestWithParam<CrashCase> {};

TEST_P(CrashAtEveryWrite, EndsAsIfNothingHadHappened) {
  const CrashCase& scenario = GetParam();
  Simulation undisturbed(scenario.study, scenario.scripts);
  undisturbed.run_to_end();
  const std::string expected = undisturbed.fingerprint(scenario.order);
  const std::int64_t writes = undisturbed.faults().writes();
  ASSERT_GT(writes, 30);
  for (std::int64_t k = 1; k <= writes; ++k) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE("crash " + std::string(after ? "after" : "before") + " write " +
                   std::to_string(k));
      Simulation simulation(scenario.study, scenario.scripts);
      simulation.faults().crash_at(k, after);
      simulation.run_to_end();
      ASSERT_EQ(simulation.faults().crashes(), 1);
      ASSERT_EQ(simulation.fingerprint(scenario.order), expected);
      ASSERT_EQ(simulation.store().trials_created(), undisturbed.store().trials_created());
      ASSERT_EQ(simulation.runs().started(), undisturbed.runs().started());
      ASSERT_LE(simulation.runs().most_at_once(), scenario.study.spec.budget.parallelism);
      expect_ended_once(simulation);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simulation, CrashAtEveryWrite, testing::ValuesIn(crash_cases()),
                         [](const auto& scenario) { return scenario.param.name; });

TEST(Simulation, ACrashAtEveryWriteUnderAshaKeepsTheInvariants) {
  api::Study study = digits_study();
  study.spec.early_stopping = api::EarlyStopping{.name = api::StoppingKind::kAsha};
  Simulation undisturbed(study, bad_days);
  undisturbed.run_to_end();
  for (std::int64_t k = 1; k <= undisturbed.faults().writes(); k += 3) {
    SCOPED_TRACE("crash at write " + std::to_string(k));
    Simulation simulation(study, bad_days);
    simulation.faults().crash_at(k, k % 2 == 0);
    simulation.run_to_end();
    ASSERT_EQ(simulation.store().trials_created(), 12);
    expect_ended_once(simulation);
  }
}

TEST(Simulation, AManagerThatKeepsCrashingStillGetsThere) {
  Random random(3);
  Simulation simulation(digits_study(), bad_days);
  for (int second = 1; second < 120; ++second) {
    simulation.faults().crash_at(1 + static_cast<std::int64_t>(random.below(6)), second % 2 == 0);
    simulation.run_until(second);
  }
  simulation.run_to_end();
  EXPECT_EQ(simulation.store().trials_created(), 12);
  EXPECT_GT(simulation.faults().crashes(), 30);
  expect_ended_once(simulation);
}

// ---- Two leaders, lost events, broken disks ----------------------------------------------------

TEST(Simulation, TwoManagersWithStaleReadsDoNothingTwice) {
  Simulation undisturbed(digits_study(), bad_days);
  undisturbed.run_to_end();
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(digits_study(), bad_days);
    simulation.run_two_stale_managers(seed);
    ASSERT_EQ(simulation.fingerprint(/*order=*/false), undisturbed.fingerprint(/*order=*/false));
    ASSERT_EQ(simulation.store().trials_created(), 12);
    ASSERT_LE(simulation.runs().most_at_once(), 4);
    expect_ended_once(simulation);
  }
}

TEST(Simulation, LostEventsAreMadeUpForByResyncs) {
  Simulation simulation(digits_study(), bad_days);
  simulation.store().lose_events();
  simulation.runs().lose_events();
  simulation.run_to_end();
  EXPECT_EQ(simulation.study().status.trials.completed, 10);
  expect_ended_once(simulation);
}

TEST(Simulation, AShortBreakdownOfTheStoreIsRetried) {
  Simulation simulation(digits_study(), all_finish);
  simulation.expect_refusals();
  simulation.run_until(5);
  simulation.store().fail_writes(3);
  simulation.run_to_end();
  EXPECT_EQ(simulation.error(), "");
  EXPECT_EQ(simulation.study().status.trials.completed, 12);
}

TEST(Simulation, ALongBreakdownEndsTheManagerAndLosesNothing) {
  Simulation simulation(digits_study(), all_finish);
  simulation.expect_refusals();
  simulation.run_until(5);
  simulation.store().fail_writes(1'000'000);
  simulation.run_to_end();
  EXPECT_THAT(simulation.error(), testing::HasSubstr("no space left on device"));
  EXPECT_THAT(simulation.error(), testing::HasSubstr("10 times in a row"));
}

// ---- What people do ----------------------------------------------------------------------------

TEST(Simulation, ASuspendedStudyGoesOnFromItsCheckpoints) {
  Simulation simulation(digits_study(), all_finish);
  simulation.run_until(5);
  api::Study study = simulation.study();
  study.spec.suspend = true;
  ASSERT_TRUE(simulation.store().update_study_spec(study).ok());
  simulation.run_until(30);
  EXPECT_EQ(reason_of(simulation.study(), "Suspended"), "Requested");
  const std::int64_t writes = simulation.faults().writes();
  simulation.run_until(100);
  EXPECT_EQ(simulation.faults().writes(), writes) << "a suspended Study is silent";
  for (const api::TrialPtr& trial : simulation.trials()) {
    EXPECT_EQ(trial->status.phase, TrialPhase::kPaused);
    EXPECT_GE(trial->status.report->checkpoint_step, 4);
  }
  study = simulation.study();
  study.spec.suspend = false;
  ASSERT_TRUE(simulation.store().update_study_spec(study).ok());
  simulation.run_to_end();
  EXPECT_EQ(simulation.study().status.trials.completed, 12);
  EXPECT_LT(simulation.study().status.active_seconds, 40) << "nothing is trained twice";
  expect_ended_once(simulation);
}

TEST(Simulation, ABiggerBudgetReopensAFinishedStudy) {
  Simulation simulation(digits_study(), all_finish);
  simulation.run_to_end();
  api::Study study = simulation.study();
  study.spec.budget.trials = 15;
  ASSERT_TRUE(simulation.store().update_study_spec(study).ok());
  simulation.run_until(60);
  simulation.run_to_end();
  EXPECT_EQ(simulation.study().status.progress, "15/15");
  EXPECT_EQ(reason_of(simulation.study(), "Succeeded"), "TrialsDone");
  EXPECT_EQ(simulation.store().trials_created(), 15);
}

TEST(Simulation, AFailedStudySaysWhy) {
  api::Study study = digits_study();
  study.spec.budget.failures = 2;
  study.spec.trial.retries = 0;
  Simulation simulation(study, [](std::int64_t, std::int64_t) { return Script{Fate::kFail, 0}; });
  simulation.run_to_end();
  const api::Study ended = simulation.study();
  EXPECT_EQ(reason_of(ended, "Failed"), "TooManyFailures");
  EXPECT_THAT(core::find_condition(ended.status.conditions, "Failed")->message,
              testing::HasSubstr("exit code 3: no luck"));
}

TEST(Simulation, TheIndexOfADeletedTrialIsNotGivenAwayAgain) {
  api::Study study = digits_study();
  study.spec.budget.trials = 4;
  Simulation simulation(study, all_finish);
  simulation.run_to_end();
  simulation.store().delete_trial("digits-0");
  simulation.store().delete_trial("digits-3");
  study = simulation.study();
  study.spec.budget.trials = 5;
  ASSERT_TRUE(simulation.store().update_study_spec(study).ok());
  simulation.run_until(60);
  simulation.run_to_end();
  ASSERT_EQ(simulation.trials().size(), 3u);
  EXPECT_EQ(simulation.trials().back()->metadata.name, "digits-4");
}

TEST(Simulation, FewerSlotsThanParallelismAreRespected) {
  Simulation simulation(digits_study(), all_finish);
  simulation.runs().set_capacity(2);
  simulation.run_to_end();
  EXPECT_EQ(simulation.runs().most_at_once(), 2);
}

// Without a claim each run of a trial begins at step 0. This costs more, and ends the same.
TEST(Simulation, WithoutDurableCheckpointsTheSameTrialsEndAtAHigherPrice) {
  api::Study study = digits_study();
  study.spec.algorithm.name = api::AlgorithmKind::kHyperband;
  study.spec.trial.checkpoints.emplace();
  Simulation durable(study, all_finish);
  durable.run_to_end();
  Simulation lost(study, all_finish);
  lost.runs().lose_checkpoints();
  lost.run_to_end();
  EXPECT_EQ(lost.fingerprint(/*order=*/false), durable.fingerprint(/*order=*/false));
  EXPECT_GT(lost.runs().steps_taken(), durable.runs().steps_taken());
  EXPECT_EQ(durable.study().status.search.front().durable_checkpoints, true);
  EXPECT_EQ(lost.study().status.search.front().durable_checkpoints, false);
}

// Evicted at the sixth step again and again, from step 0 each time: no step is new, yet each run
// has trained.
TEST(Simulation, ATrialThatStartsAgainAfterEachEvictionIsNotGivenUp) {
  const auto evicted = [](std::int64_t index, std::int64_t run) {
    return index == 0 && run < 13 ? Script{Fate::kDisrupt, 6} : Script{};
  };
  Simulation simulation(digits_study(), evicted);
  simulation.runs().lose_checkpoints();
  simulation.run_to_end();
  EXPECT_EQ(simulation.trials()[0]->status.phase, TrialPhase::kCompleted);
  EXPECT_EQ(simulation.trials()[0]->status.runs.back().run, 13);
  expect_ended_once(simulation);
}

}  // namespace
}  // namespace fettle::sim
