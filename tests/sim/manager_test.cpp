// The Manager and its controllers: what they do about errors, and that run() listens.
#include "control/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/conditions.h"
#include "core/names.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string failure_of(const std::vector<api::StatusCondition>& conditions) {
  const api::StatusCondition* failed = core::find_condition(conditions, "Failed");
  return failed == nullptr || !failed->status ? "" : failed->reason + ": " + failed->message;
}

TEST(Manager, ARunThatCanNeverStartIsAFailureOfItsTrialInTheWordsOfWhoRefused) {
  Simulation simulation(digits_study(), all_finish);
  simulation.runs().refuse_starts("spec.trial.template names no command");
  simulation.run_to_end();
  EXPECT_THAT(failure_of(simulation.study().status.conditions),
              testing::StartsWith("TooManyFailures: "));
  for (const api::TrialPtr& trial : simulation.trials()) {
    if (trial->status.phase != api::TrialPhase::kFailed) continue;
    EXPECT_EQ(trial->status.runs.size(), 3u) << "the first run and two retries";
    EXPECT_EQ(failure_of(trial->status.conditions),
              "Failed: spec.trial.template names no command (3 runs)");
  }
}

TEST(Manager, AStudyThatNoSamplerTakesFailsAndSaysWhy) {
  api::Study study = digits_study();
  study.spec.algorithm.name = "clairvoyance";
  Simulation simulation(study, all_finish);
  simulation.run_to_end();
  EXPECT_THAT(failure_of(simulation.study().status.conditions), HasSubstr("clairvoyance"));
  EXPECT_EQ(simulation.store().trials_created(), 0);
}

TEST(Manager, AForeignTrialOfTheSameNameIsNotTakenOver) {
  Simulation simulation(digits_study(), all_finish);
  api::Trial foreign;
  foreign.metadata.name = "digits-0";
  foreign.metadata.labels[core::kStudyUidLabel] = "somebody else";
  foreign.spec.study = "other";
  ASSERT_TRUE(simulation.store().create_trial(foreign).ok());
  simulation.run_until(5);
  EXPECT_THAT(simulation.store().events(), Contains("NameCollision"));
  EXPECT_EQ(simulation.runs().started(), 0);
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
  void on_reconciled(const control::Reconciled& look) override { actions += look.actions; }

  std::vector<std::string> events;
  int actions = 0;
};

TEST(Manager, TheObserverHearsWhatIsDone) {
  Simulation simulation(digits_study(), all_finish);
  Recorder recorder;
  control::Manager manager(simulation.store(), simulation.runs(), simulation.clock(), recorder);
  while (manager.step().value()) {
  }
  EXPECT_THAT(recorder.events, Contains("digits Started"));
  EXPECT_THAT(recorder.events, Contains("digits-3 Started"));
  // Four trials created and a status; then for each trial a start; and the events.
  EXPECT_EQ(recorder.actions, 4 + 1 + 4 + 5);
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
