// The Manager and its controllers: their reactions to errors, and run()'s to changes.
#include "core/control/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/conditions.h"
#include "core/names.h"
#include "core/study/blocked.h"
#include "core/trial/trial_waiting.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string failure_of(const std::vector<api::StatusCondition>& conditions) {
  const api::StatusCondition* failed = core::find_condition(conditions, "Failed");
  return failed == nullptr || !failed->status ? "" : failed->reason + ": " + failed->message;
}

// Returns the message of the condition Blocked; "" if it is false.
std::string blocked_message(const api::Study& study) {
  return core::is_blocked(study.status) ? core::blocked_message(study.status) : "";
}

TEST(Manager, ARefusedRunFailsItsTrialWithTheRefusalsMessage) {
  Simulation simulation(digits_study(), all_finish);
  simulation.runs().refuse_starts("spec.trial.template names no command");
  simulation.run_to_end();
  EXPECT_THAT(failure_of(simulation.study().status.conditions),
              testing::StartsWith("TooManyFailures: "));
  std::size_t runs = 0;
  for (const api::TrialPtr& trial : simulation.trials()) {
    if (trial->status.phase != api::TrialPhase::kFailed) continue;
    runs = trial->status.runs.size();
    EXPECT_THAT(failure_of(trial->status.conditions),
                testing::HasSubstr(": spec.trial.template names no command"));
  }
  EXPECT_EQ(runs, 1u) << "once it is known that none can start, there are no retries";
}

TEST(Manager, AStudyThatNoSamplerTakesFailsAndSaysWhy) {
  Simulation simulation(digits_study(), all_finish);
  api::Study study = digits_study();
  study.spec.algorithm.name = api::AlgorithmKind::kTpe;
  study.spec.algorithm.candidates = 0;
  simulation.store().put_study(study);  // stored under other rules
  simulation.run_to_end();
  EXPECT_THAT(failure_of(simulation.study().status.conditions), HasSubstr("candidates"));
  EXPECT_EQ(simulation.store().trials_created(), 0);
}

// By a manager that has forgotten the refusals; even if no plan changes the condition.
TEST(Manager, ATrialThatIsNotRefusedAnyMoreDoesNotSaySoAfterARestart) {
  Simulation simulation(digits_study(), all_finish);
  simulation.run_until(1);
  api::Study suspended = simulation.study();
  suspended.spec.suspend = true;
  ASSERT_TRUE(simulation.store().update_study_spec(suspended).ok());
  simulation.run_until(5);
  api::Trial trial = *simulation.trials().at(0);
  ASSERT_EQ(trial.status.phase, api::TrialPhase::kPaused);
  core::set_trial_waiting(trial.status.conditions, core::kRefused, "exceeded quota", 0);
  ASSERT_TRUE(simulation.store().update_trial_status(trial).ok());
  simulation.restart();
  simulation.settle();
  EXPECT_FALSE(core::is_refused(simulation.trials().at(0)->status.conditions));
}

api::Trial foreign_trial(const std::string& name, const std::string& owner) {
  api::Trial foreign;
  foreign.metadata.name = name;
  foreign.metadata.labels[core::kStudyUidLabel] = owner;
  foreign.spec.study = "digits";
  foreign.status.phase = api::TrialPhase::kCompleted;
  return foreign;
}

TEST(Manager, AnUnownedTrialBlocksAStudyThatNeedsItsName) {
  Simulation simulation(digits_study(), all_finish);
  simulation.expect_refusals();
  ASSERT_TRUE(simulation.store().create_trial(foreign_trial("digits-0", "")).ok());
  simulation.run_until(5);
  EXPECT_THAT(blocked_message(simulation.study()), HasSubstr("trial digits-0 exists but is not"));
  EXPECT_EQ(simulation.study().status.display.state, "Blocked");
  EXPECT_EQ(simulation.runs().started(), 0);
  const auto events = simulation.store().events();
  EXPECT_EQ(std::count(events.begin(), events.end(), "Blocked"), 1);
  simulation.store().delete_trial("digits-0");
  simulation.run_to_end();
  EXPECT_EQ(blocked_message(simulation.study()), "");
  EXPECT_EQ(simulation.study().status.trials.completed, 12);
}

TEST(Manager, ForeignTrialsOfOtherNamesAreIgnored) {
  Simulation simulation(digits_study(), all_finish);
  api::Trial huge = foreign_trial("digits-of-mine", "");
  huge.spec.index = api::kMaxTrialIndex;
  huge.spec.workers = 1024;
  ASSERT_TRUE(simulation.store().create_trial(huge).ok());
  simulation.run_to_end();
  EXPECT_EQ(simulation.study().status.trials.created, 12);
  EXPECT_EQ(simulation.runs().finished("digits-of-mine"), 0);
}

TEST(Manager, ARecreatedStudyWaitsForItsEarlierTrialsToGo) {
  Simulation simulation(digits_study(), all_finish);
  simulation.run_to_end();
  const std::string before = simulation.fingerprint(/*order=*/false);
  const std::string earlier_uid = simulation.study().metadata.uid;
  simulation.store().delete_study({"", "digits"}, simulation.clock().now_ms());
  ASSERT_TRUE(simulation.store().create_study(digits_study()).ok());
  simulation.restart();
  simulation.settle();
  const api::Study waiting = simulation.study();
  ASSERT_NE(waiting.metadata.uid, earlier_uid);
  const api::StatusCondition* said = core::find_condition(waiting.status.conditions, "Waiting");
  ASSERT_NE(said, nullptr);
  EXPECT_TRUE(said->status);
  EXPECT_EQ(said->reason, "EarlierTrials");
  EXPECT_THAT(said->message, HasSubstr("12 trials of an earlier Study"));
  EXPECT_EQ(waiting.status.display.state, "Waiting");
  EXPECT_EQ(waiting.status.trials.created, 0);
  simulation.run_to_end();
  const api::Study after = simulation.study();
  EXPECT_FALSE(core::is_true(after.status.conditions, "Waiting"));
  EXPECT_EQ(after.status.trials.completed, 12);
  EXPECT_EQ(simulation.fingerprint(/*order=*/false), before) << "the same search, from the start";
  for (const api::TrialPtr& trial : simulation.trials()) {
    EXPECT_TRUE(core::belongs_to(*trial, after));
  }
}

TEST(Manager, AThirdRefusalIsReportedAndRetried) {
  Simulation simulation(digits_study(), all_finish);
  simulation.expect_refusals();
  simulation.run_until(5);
  const std::string quota = "exceeded quota: few, requested: count/trials.fettle.dev=1, used: ";
  int used = 4;
  simulation.store().refuse_trials([&] { return quota + std::to_string(used++); });
  simulation.run_until(60);
  EXPECT_THAT(blocked_message(simulation.study()), HasSubstr(quota));
  const auto events = simulation.store().events();
  EXPECT_EQ(std::count(events.begin(), events.end(), "Blocked"), 1);
  EXPECT_EQ(simulation.study().status.trials.completed, 4) << "what is known is told all the same";
  EXPECT_FALSE(core::is_finished(simulation.study().status));
  simulation.store().refuse_trials({});
  simulation.run_to_end();
  EXPECT_EQ(blocked_message(simulation.study()), "");
  EXPECT_EQ(simulation.study().status.display.state, "Succeeded");
  EXPECT_EQ(simulation.study().status.trials.completed, 12);
}

TEST(Manager, TheObserverSeesAStudyWhoseStatusIsRefused) {
  Simulation simulation(digits_study(), all_finish);
  simulation.expect_refusals();
  simulation.store().refuse_writes("the webhook answers 500");
  simulation.run_until(5);
  EXPECT_GE(simulation.refused_in_a_row(), 3);
  EXPECT_THAT(simulation.last_refusal(), HasSubstr("the condition Blocked: the webhook"));
  simulation.store().refuse_writes("");
  simulation.run_to_end();
  EXPECT_EQ(simulation.study().status.trials.completed, 12);
}

// An operator reports a promotion that the rulebook forbids: the simulation fails.
TEST(ManagerDeathTest, ARetryThatNeverEndsFailsTheSimulation) {
  EXPECT_DEATH(
      {
        Simulation simulation(digits_study(), all_finish);
        simulation.store().refuse_trials([] { return std::string("may not change"); });
        simulation.run_until(5);
      },
      "refused again and again: may not change");
}

TEST(Manager, ATrialThatAppearsWhileItIsPlannedIsTakenAsItIs) {
  Simulation simulation(digits_study(), all_finish);
  StaleStore before(simulation.store());
  before.refresh();  // knows no trials
  simulation.settle();
  ASSERT_EQ(simulation.trials().size(), 4u);
  const std::string expected = simulation.fingerprint(/*order=*/true);
  control::Observer observer;
  control::Manager late(before, simulation.runs(), simulation.clock(), observer);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(late.step().ok());
  EXPECT_EQ(simulation.fingerprint(/*order=*/true), expected);
  EXPECT_EQ(simulation.store().trials_created(), 4);
}

TEST(Manager, ConflictsAreNoFailuresOfTheEnvironment) {
  Simulation simulation(digits_study(), all_finish);
  simulation.expect_refusals();  // endless conflicts are reported (refusals.h)
  simulation.run_until(5);
  simulation.store().conflict_writes(1'000'000);
  simulation.run_until(60);
  simulation.store().fail_writes(2);
  simulation.run_to_end();
  EXPECT_EQ(simulation.error(), "");
  EXPECT_EQ(simulation.study().status.trials.completed, 12);
}

class Recorder : public control::Observer {
 public:
  void on_event(const control::Change& about, const core::EventNote& event, std::int64_t) override {
    events.push_back(about.key.name + " " + event.reason);
  }
  void on_reconciled(const control::ReconcileRecord& record) override { actions += record.actions; }

  std::vector<std::string> events;
  int actions = 0;
};

TEST(Manager, TheObserverHearsEachAction) {
  Simulation simulation(digits_study(), all_finish);
  Recorder recorder;
  control::Manager manager(simulation.store(), simulation.runs(), simulation.clock(), recorder);
  while (manager.step().value()) {
  }
  EXPECT_THAT(recorder.events, Contains("digits Started"));
  EXPECT_THAT(recorder.events, Contains("digits-3 Started"));
  // The choice of trials, four creations, a status; a start for each trial; and the events.
  EXPECT_EQ(recorder.actions, 1 + 4 + 1 + 4 + 5);
}

TEST(Manager, RunEndsWhenItIsToldTo) {
  Faults faults;
  SimStore store(faults);
  control::SystemClock clock;
  SimRuns runs(faults, clock, all_finish, digits_curve);
  control::Observer observer;
  control::Manager manager(store, runs, clock, observer);
  std::atomic<bool> finished = false;
  std::thread other([&] {
    finished = true;
    manager.wake();
  });
  EXPECT_TRUE(manager.run([&] { return finished.load(); }).ok());
  other.join();
}

TEST(Manager, WatchEventsThatComeAfterItsEndDoNothing) {
  Simulation simulation(digits_study(), all_finish);
  control::Observer observer;
  auto manager = std::make_unique<control::Manager>(simulation.store(), simulation.runs(),
                                                    simulation.clock(), observer);
  manager.reset();
  api::Study study = simulation.study();
  study.spec.budget.trials = 3;
  EXPECT_TRUE(simulation.store().update_study_spec(study).ok());
}

}  // namespace
}  // namespace fettle::sim
