// SimStore: an API server in memory, with resourceVersions, generations, conflicts and watches,
// that can crash its caller at any write, lose watch events and serve stale reads. One thread.
//
// Writes are judged by the rulebook of the API server (api/testing/rulebook.h), and what it refuses
// is refused here. Checked at every write besides: a fact that was written never changes. A trial
// is the Study's whose uid it names; those of a deleted Study go one after the other, in time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "control/store.h"
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
  // From now on CHECKs that every object comes back from its JSON document as it was.
  void check_documents() { check_documents_ = true; }
  // The next `n` writes fail as a broken disk does.
  void fail_writes(int n) {
    failing_ = n;
    failure_ = io_error("no space left on device");
  }
  // The next `n` writes find that another writer was faster.
  void conflict_writes(int n) {
    failing_ = n;
    failure_ = {ErrorCode::kConflict, "another writer was faster"};
  }
  // From now on trials are refused as by a full quota, in these words; empty: no more.
  void refuse_trials(std::function<std::string()> words) { refuse_trials_ = std::move(words); }
  // From now on every write is refused for a while, in these words; "": no more.
  void refuse_writes(std::string words) { refuse_writes_ = std::move(words); }
  void delete_trial(const std::string& name) { objects_.trials.erase({"", name}); }
  // Stores the Study past all rules, as it may have come in under earlier ones.
  api::Study put_study(const api::Study& study);
  // As a user does: without asking for a version.
  void delete_study(const control::Key& key, std::int64_t now_ms);
  // Deletes what is due by now; returns the names of the trials that are gone.
  std::vector<std::string> collect_garbage(std::int64_t now_ms);
  // When the next trial is deleted; -1 = never.
  std::int64_t next_ms() const;

  // What all objects were at some moment: what a lagging cache serves.
  struct Objects {
    std::map<control::Key, api::Study> studies;
    std::map<control::Key, api::TrialPtr> trials;
  };
  const Objects& objects() const { return objects_; }

  std::int64_t trials_created() const { return trials_created_; }
  // When the Study's status was written.
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

// The store as a controller with a lagging cache sees it: reads come from a snapshot, which
// refresh() renews; writes go through and are checked against the truth.
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
