// Simulation: a Study from beginning to end under a virtual clock, with the real controllers and
// decisions over an API server and processes in memory. One thread, no waiting, only seeded
// randomness.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "core/control/manager.h"
#include "tests/sim/faults.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_runs.h"
#include "tests/sim/sim_store.h"

namespace fettle::sim {

// A Study called "digits" that maximises "accuracy" over x in [0, 1], 9 steps a trial.
api::Study digits_study();

// A learning curve that ends at 1 - (x - 0.3)^2; curves with a better end are ahead all the time.
double digits_curve(const Json& parameters, std::int64_t step);

// Every run finishes.
Script all_finish(std::int64_t index, std::int64_t run);
// Some trials fail once, some always, some are disrupted, hang, or run out of memory.
Script bad_days(std::int64_t index, std::int64_t run);

class Simulation {
 public:
  Simulation(const api::Study& study, Scripts scripts);

  // Runs until the Study has ended and nothing more happens. CHECKs that this takes less than
  // `most_s` virtual seconds, that no trial then counts as at work (search::any_runs), and that
  // afterwards nothing is written, even by a new Manager.
  void run_to_end(std::int64_t most_s = 100'000);
  // Runs until `at_s` virtual seconds after the beginning.
  void run_until(std::int64_t at_s);
  // Like run_to_end(), with two managers that read snapshots of different age in turn.
  void run_two_stale_managers(std::uint64_t seed);
  // Reconciles everything that is due, and everything that becomes due by that.
  void settle() { step_through(); }
  // Replaces the manager by a new one, like a restart.
  void restart();
  // Expects endless refusals, which otherwise fail the test.
  void expect_refusals() { observer_.expected = true; }

  int refused_in_a_row() const { return observer_.newest.refused; }
  const std::string& last_refusal() const { return observer_.newest.error; }

  api::Study study();
  std::vector<api::TrialPtr> trials();
  // Returns everything that must not depend on crashes: each trial's parameters, seed, phase, stop
  // and facts, without times; with `order` the facts' seq too.
  std::string fingerprint(bool order);

  Faults& faults() { return faults_; }
  SimStore& store() { return store_; }
  SimRuns& runs() { return runs_; }
  SimClock& clock() { return clock_; }
  // Returns the error with which the manager gave up, "" if it did not.
  const std::string& error() const { return error_; }

 private:
  bool step();          // false: nothing is due
  bool step_through();  // all steps that are due
  void expect_nobody_runs();
  void expect_quiet();
  std::int64_t next_ms();
  void advance();

  // Detects an action that is refused again and again for the same reason, which would never end.
  class Refusals : public control::Observer {
   public:
    void on_reconciled(const control::ReconcileRecord& record) override {
      CHECK(expected || record.refused < control::kBlockedAfter,
            record.item.key.name + " is refused again and again: " + record.error);
      if (record.refused > 0) newest = record;
    }
    bool expected = false;
    control::ReconcileRecord newest;  // the newest refusal
  };

  Faults faults_;
  SimClock clock_;
  SimStore store_;
  SimRuns runs_;
  Refusals observer_;
  std::unique_ptr<control::Manager> manager_;
  const std::int64_t began_ms_;
  std::string error_;
};

}  // namespace fettle::sim
