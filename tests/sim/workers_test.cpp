// A Manager with several workers: the same search as with one, however the work is divided. Meant
// for the thread sanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/conditions.h"
#include "core/control/manager.h"
#include "tests/sim/locked.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

// The machine's clock, sped up.
class FastClock : public control::Clock {
 public:
  std::int64_t now_ms() override { return 1'000'000 + 200 * (clock_.now_ms() - began_ms_); }

 private:
  control::SystemClock clock_;
  const std::int64_t began_ms_ = clock_.now_ms();
};

class WorkersTest : public testing::Test {
 protected:
  // Several Studies on their bad days, run by four workers until all have ended.
  Status run_studies(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      api::Study study = digits_study();
      study.metadata.name = name;
      study.spec.algorithm.name = api::AlgorithmKind::kTpe;
      study.spec.algorithm.startup_trials = 3;
      CHECK(store_.create_study(study).ok(), "a Study could not be created");
    }
    control::Manager manager(locked_store_, locked_runs_, clock_, observer_, options_);
    std::atomic<bool> done = false;
    std::thread world([&] {
      while (!done) {
        locked_runs_.advance();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    Status ended = manager.run([&] { return all_finished(); });
    done = true;
    world.join();
    return ended;
  }

  bool all_finished() {
    const std::vector<api::Study> studies = locked_store_.list_studies().value();
    return std::all_of(studies.begin(), studies.end(),
                       [](const api::Study& study) { return core::is_finished(study.status); });
  }

  std::mutex mutex_;
  Faults faults_;
  FastClock clock_;
  SimStore store_{faults_};
  SimRuns runs_{faults_, clock_, bad_days, digits_curve};
  LockedStore locked_store_{store_, mutex_};
  LockedRuns locked_runs_{runs_, mutex_};
  control::Observer observer_;
  control::ManagerOptions options_{.resync_ms = 5'000, .max_failures = 10, .workers = 4};
};

TEST_F(WorkersTest, StudiesRunSideBySideAndEachTrialEndsOnce) {
  ASSERT_TRUE(run_studies({"east", "north", "west"}).ok());
  EXPECT_EQ(store_.trials_created(), 3 * 12);
  const std::vector<api::Study> studies = store_.list_studies().value();
  for (const api::Study& study : studies) {
    SCOPED_TRACE(study.metadata.name);
    EXPECT_EQ(study.status.trials.completed, 10);
    EXPECT_EQ(study.status.trials.failed, 2);
    std::set<std::int64_t> seqs;
    const auto trials = store_.list_trials({"", study.metadata.name}).value();
    for (const api::TrialPtr& trial : trials) {
      for (const api::Fact& fact : trial->status.facts) seqs.insert(fact.seq);
    }
    EXPECT_EQ(seqs.size(), 12u) << "every trial has one fact, and no two the same seq";
  }
}

TEST_F(WorkersTest, TheFirstWorkerThatGivesUpEndsAll) {
  store_.fail_writes(1'000'000);
  const Status ended = run_studies({"east"});
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kIo);
}

TEST_F(WorkersTest, WithoutALimitOfFailuresItGoesOnUntilTheStoreRecovers) {
  options_.max_failures = 0;
  store_.fail_writes(4);
  EXPECT_TRUE(run_studies({"east"}).ok());
  EXPECT_EQ(store_.trials_created(), 12);
}

}  // namespace
}  // namespace fettle::sim
