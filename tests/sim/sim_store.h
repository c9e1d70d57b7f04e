// SimStore: an API server in memory, with resourceVersions, generations, conflicts and watches,
// that can crash its caller at any write, lose watch events and serve stale reads. One thread.
//
// The rulebook of the API server (api/testing/rulebook.h) judges writes, and this store refuses the
// same writes. Every write is also checked for this: a written fact never changes. A trial belongs
// to the Study whose uid it names; the trials of a deleted Study are deleted one after the other,
// over time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "core/control/store.h"
#include "tests/sim/faults.h"

namespace fettle::sim {

class SimStore : public control::Store {
 public:
  explicit SimStore(Faults& faults) : faults_(faults) {}

  Result<api::Study> get_study(const control::Key& key) override;
  Result<api::TrialPtr> get_trial(const control::Key& key) override;
  Result<std::vector<api::Study>> list_studies() override;
  Result<std::vector<api::TrialPtr>> list_trials(const control::Key& study) override;
  std::int64_t count_earlier_trials(const api::Study& study) override;
  Result<api::Study> create_study(const api::Study& study) override;
  Result<api::Study> update_study_spec(const api::Study& study) override;
  Result<api::Study> update_study_status(const api::Study& study) override;
  Status delete_study(const api::Study& study) override;
  Result<api::Trial> create_trial(const api::Trial& trial) override;
  Result<api::Trial> update_trial_spec(const api::Trial& trial) override;
  Result<api::Trial> update_trial_status(const api::Trial& trial) override;
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override;
  void watch(std::function<void(const control::Change&)> listener) override;

  // Loses every watch event from now on: only resyncs help.
  void lose_events() { lose_events_ = true; }
  // From now on CHECKs that every object survives its JSON document unchanged.
  void check_documents() { check_documents_ = true; }
  // Fails the next `n` writes like a broken disk.
  void fail_writes(int n) {
    failing_ = n;
    failure_ = io_error("no space left on device");
  }
  // Fails the next `n` writes with a conflict, like a faster writer.
  void conflict_writes(int n) {
    failing_ = n;
    failure_ = {ErrorCode::kConflict, "another writer was faster"};
  }
  // From now on refuses trials like a full quota, with this message; empty: no more.
  void refuse_trials(std::function<std::string()> words) { refuse_trials_ = std::move(words); }
  // From now on refuses every write, with this message; "": no more.
  void refuse_writes(std::string words) { refuse_writes_ = std::move(words); }
  void delete_trial(const std::string& name) { objects_.trials.erase({"", name}); }
  // Stores the Study past all rules, like a Study from a time of other rules.
  api::Study put_study(const api::Study& study);
  // Deletes like a user: without a version.
  void delete_study(const control::Key& key, std::int64_t now_ms);
  // Deletes objects that are due; returns the names of the trials that are gone.
  std::vector<std::string> collect_garbage(std::int64_t now_ms);
  // Returns when the next trial is deleted; -1 = never.
  std::int64_t next_ms() const;

  // All objects at some moment, as a lagging cache serves them.
  struct Objects {
    std::map<control::Key, api::Study> studies;
    std::map<control::Key, api::TrialPtr> trials;
  };
  const Objects& objects() const { return objects_; }

  std::int64_t trials_created() const { return trials_created_; }
  // Returns the times at which the Study's status was written.
  const std::vector<std::int64_t>& status_times() const { return status_times_; }
  const std::vector<std::string>& events() const { return events_; }  // reasons, in order

 private:
  Status admit();
  Status judge(const api::Trial* before, const api::Trial& after) const;
  Status judge(const api::Study* before, const api::Study& after) const;
  void erase_study(const control::Key& key, std::int64_t now_ms);
  void changed(control::Kind kind, const api::Metadata& meta, const std::string& study);
  std::string next_version() { return std::to_string(++version_); }
  Result<api::Trial> put_trial(const api::Trial& trial, bool spec);

  Faults& faults_;
  Objects objects_;
  std::map<control::Key, std::int64_t> garbage_;  // trials of deleted Studies, and when they go
  std::function<void(const control::Change&)> listener_;
  std::int64_t version_ = 0;
  std::int64_t trials_created_ = 0;
  std::vector<std::int64_t> status_times_;
  std::vector<std::string> events_;
  bool lose_events_ = false;
  bool check_documents_ = false;
  std::function<std::string()> refuse_trials_;
  std::string refuse_writes_;
  int failing_ = 0;
  Error failure_;
};

// The store of a controller with a lagging cache: reads come from a snapshot, which refresh()
// renews; writes go through and are checked against the truth.
class StaleStore : public control::Store {
 public:
  explicit StaleStore(SimStore& truth) : truth_(truth) {}
  void refresh() { seen_ = truth_.objects(); }

  Result<api::Study> get_study(const control::Key& key) override;
  Result<api::TrialPtr> get_trial(const control::Key& key) override;
  Result<std::vector<api::Study>> list_studies() override;
  Result<std::vector<api::TrialPtr>> list_trials(const control::Key& study) override;
  std::int64_t count_earlier_trials(const api::Study& study) override;
  Result<api::Study> create_study(const api::Study& s) override { return truth_.create_study(s); }
  Result<api::Study> update_study_spec(const api::Study& s) override {
    return truth_.update_study_spec(s);
  }
  Result<api::Study> update_study_status(const api::Study& s) override {
    return truth_.update_study_status(s);
  }
  Status delete_study(const api::Study& s) override { return truth_.delete_study(s); }
  Result<api::Trial> create_trial(const api::Trial& t) override { return truth_.create_trial(t); }
  Result<api::Trial> update_trial_spec(const api::Trial& t) override {
    return truth_.update_trial_spec(t);
  }
  Result<api::Trial> update_trial_status(const api::Trial& t) override {
    return truth_.update_trial_status(t);
  }
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override {
    truth_.record_event(about, warning, reason, message, now_ms);
  }
  void watch(std::function<void(const control::Change&)>) override {}  // only resyncs
  Status confirm(const api::Trial& trial) override { return truth_.confirm(trial); }

 private:
  SimStore& truth_;
  SimStore::Objects seen_;
};

}  // namespace fettle::sim
