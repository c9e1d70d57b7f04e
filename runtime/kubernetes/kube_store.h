// KubeStore: control::Store on the API server.
//
// Reads come from caches that informers keep; what this store writes is put into them at once, so a
// controller reads its own writes. Spec and status are written with the resourceVersion they were
// planned from. Status is applied by the field manager `fettle`; status.report of a trial with the
// built-in trainer stays the trainer's, but for one case: the pod has ended and its last words say
// more than the trainer could report; then the report is applied in the trainer's name. Curves that
// the caches leave out (entries.h) are read again before a report that has one is written.
//
// Objects that cannot be read are reported on the objects themselves (entries.h). A Study that
// cannot be read is not there for the controllers, and its trials run on; the trials of a Study are
// not listed while one of them cannot be read, so that nothing is decided without it.
//
// A trial is the Study's whose uid is in its owner references; any other is nobody's, whatever it
// is called. Spec is written as a merge patch between two renderings of ours, and status by apply:
// both leave fields alone that this version does not know. Nothing is created for a Study that is
// being deleted.
// Thread-safe. Client and caches outlive the store; make it before the informers start.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/clock.h"
#include "control/store.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/event_series.h"
#include "runtime/kubernetes/entries.h"

namespace fettle::kubernetes {

// The group of a Study's trials in the cache of Trials: namespace and uid of the Study.
std::string trials_of(const TrialEntry& entry);
// Its place in that group.
std::int64_t place_of(const TrialEntry& entry);

class KubeStore final : public control::Store {
 public:
  // `record`: where events go (kube/event_recorder.h); returns at once, may be empty.
  using Record = std::function<void(kube::Occurrence)>;
  KubeStore(kube::Client& client, kube::Cache<StudyEntry>& studies, kube::Cache<TrialEntry>& trials,
            control::Clock& clock, Record record);

  Result<api::Study> get_study(const control::Key& key) override;
  Result<api::TrialPtr> get_trial(const control::Key& key) override;
  Result<std::vector<api::Study>> list_studies() override;
  Result<std::vector<api::TrialPtr>> list_trials(const control::Key& study) override;
  std::int64_t count_earlier_trials(const api::Study& study) override;
  Status confirm(const api::Trial& trial) override;

  Result<api::Study> create_study(const api::Study& study) override;
  Result<api::Study> update_study_spec(const api::Study& study) override;
  Result<api::Study> update_study_status(const api::Study& study) override;
  Status delete_study(const api::Study& study) override;
  // A trial of that name that the same Study owns is the same decision, taken before: success.
  Result<api::Trial> create_trial(const api::Trial& trial) override;
  Result<api::Trial> update_trial_spec(const api::Trial& trial) override;
  Result<api::Trial> update_trial_status(const api::Trial& trial) override;

  // What is ordinary in a trial's life is no event: its status shows it.
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override;
  void watch(std::function<void(const control::Change&)> listener) override;

 private:
  Result<api::Study> keep_study(const Json& object);
  Result<api::Trial> keep_trial(const Json& object);
  Status check_owner(const api::Trial& trial) const;
  void remember_created(const api::Trial& trial, std::int64_t asked_ms);
  bool was_created_just_now(const api::Trial& trial);
  Result<api::Trial> adopt(const api::Trial& wanted, const Error& taken);
  Result<kube::Written> apply_status(const kube::Resource& resource, const api::Metadata& metadata,
                                     Json& object);
  bool is_reported_by_trainer(const api::Trial& trial) const;
  Status report_for_trainer(api::Trial& trial);
  Status restore_curve(api::Trial& trial);
  template <class Entry>
  std::optional<Json> say_readability(const kube::Resource& resource, const Entry& entry);
  void notify(control::Kind kind, const api::Metadata& metadata, const std::string& study);

  kube::Client& client_;
  kube::Cache<StudyEntry>& studies_;
  kube::Cache<TrialEntry>& trials_;
  control::Clock& clock_;
  const Record record_;
  // When the creation of a trial that this process made was asked for, by uid and resourceVersion.
  using Version = std::pair<std::string, std::string>;
  std::mutex mutex_;
  std::function<void(const control::Change&)> listener_;
  std::map<Version, std::int64_t> created_;
  // Fields of status that the definitions do not have, by resource, and when that was seen.
  std::map<std::pair<std::string, std::string>, std::int64_t> undeclared_;
};

}  // namespace fettle::kubernetes
