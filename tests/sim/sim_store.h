// SimStore: an API server in memory, with resourceVersions, generations, conflicts and watches,
// that can crash its caller at any write, lose watch events and serve stale reads. One thread.
//
// Invariant checked at every write: a fact that was written never changes, and a trial's
// parameters and seed never change.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
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
  Result<api::Study> create_study(const api::Study& study) override;
  Result<api::Study> update_study_spec(const api::Study& study) override;
  Result<api::Study> update_study_status(const api::Study& study) override;
  // Its trials go at once: the garbage collector is never late here.
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
  // The next `n` writes find that somebody else was faster.
  void conflict_writes(int n) {
    failing_ = n;
    failure_ = {ErrorCode::kConflict, "somebody else was faster"};
  }
  void delete_trial(const std::string& name) { objects_.trials.erase({"", name}); }

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
  void check_document(const api::Trial& trial) const;
  void check_document(const api::Study& study) const;
  void changed(control::Kind kind, const api::Metadata& meta, const std::string& study);
  std::string next_version() { return std::to_string(++version_); }
  Result<api::Trial> put_trial(const api::Trial& trial, bool spec);

  Faults& faults_;
  Objects objects_;
  std::function<void(const control::Change&)> listener_;
  std::int64_t version_ = 0;
  std::int64_t trials_created_ = 0;
  std::vector<std::int64_t> status_times_;
  std::vector<std::string> events_;
  bool lose_events_ = false;
  bool check_documents_ = false;
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
