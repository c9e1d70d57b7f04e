// LockedStore and LockedRuns: SimStore and SimRuns behind one mutex, for a Manager with several
// workers. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/sim/sim_runs.h"
#include "tests/sim/sim_store.h"

namespace fettle::sim {

class LockedStore : public control::Store {
 public:
  LockedStore(SimStore& store, std::mutex& mutex) : store_(store), mutex_(mutex) {}

  Result<api::Study> get_study(const control::Key& key) override {
    return locked([&] { return store_.get_study(key); });
  }
  Result<api::TrialPtr> get_trial(const control::Key& key) override {
    return locked([&] { return store_.get_trial(key); });
  }
  Result<std::vector<api::Study>> list_studies() override {
    return locked([&] { return store_.list_studies(); });
  }
  Result<std::vector<api::TrialPtr>> list_trials(const control::Key& study) override {
    return locked([&] { return store_.list_trials(study); });
  }
  std::int64_t count_earlier_trials(const api::Study& study) override {
    return locked([&] { return store_.count_earlier_trials(study); });
  }
  Status confirm(const api::Trial& trial) override {
    return locked([&] { return store_.confirm(trial); });
  }
  Result<api::Study> create_study(const api::Study& study) override {
    return locked([&] { return store_.create_study(study); });
  }
  Result<api::Study> update_study_spec(const api::Study& study) override {
    return locked([&] { return store_.update_study_spec(study); });
  }
  Result<api::Study> update_study_status(const api::Study& study) override {
    return locked([&] { return store_.update_study_status(study); });
  }
  Result<api::Trial> create_trial(const api::Trial& trial) override {
    return locked([&] { return store_.create_trial(trial); });
  }
  Result<api::Trial> update_trial_spec(const api::Trial& trial) override {
    return locked([&] { return store_.update_trial_spec(trial); });
  }
  Result<api::Trial> update_trial_status(const api::Trial& trial) override {
    return locked([&] { return store_.update_trial_status(trial); });
  }
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override {
    locked([&] { store_.record_event(about, warning, reason, message, now_ms); });
  }
  void watch(std::function<void(const control::Change&)> listener) override {
    locked([&] { store_.watch(std::move(listener)); });
  }

 private:
  template <class F>
  std::invoke_result_t<F> locked(const F& work) {
    const std::lock_guard lock(mutex_);
    return work();
  }

  SimStore& store_;
  std::mutex& mutex_;
};

class LockedRuns : public control::Runs {
 public:
  LockedRuns(SimRuns& runs, std::mutex& mutex) : runs_(runs), mutex_(mutex) {}

  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override {
    const std::lock_guard lock(mutex_);
    return runs_.start(study, trial, run);
  }
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override {
    const std::lock_guard lock(mutex_);
    return runs_.resize(trial, run, workers);
  }
  Status stop(const api::Trial& trial, std::int64_t run) override {
    const std::lock_guard lock(mutex_);
    return runs_.stop(trial, run);
  }
  Status remove(const api::Trial& trial, std::int64_t run) override {
    const std::lock_guard lock(mutex_);
    return runs_.remove(trial, run);
  }
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override {
    const std::lock_guard lock(mutex_);
    return runs_.observe(trial);
  }
  core::Capacity capacity(const api::Study& study) override {
    const std::lock_guard lock(mutex_);
    return runs_.capacity(study);
  }
  void watch(std::function<void(const std::string& trial)> listener) override {
    const std::lock_guard lock(mutex_);
    runs_.watch(std::move(listener));
  }
  void advance() {
    const std::lock_guard lock(mutex_);
    runs_.advance();
  }

 private:
  SimRuns& runs_;
  std::mutex& mutex_;
};

}  // namespace fettle::sim
