// KubeStore: control::Store on the API server.
//
// Reads come from the informers' caches. A write puts its answer into the cache at once, so a
// controller reads its own writes. Spec and status are written with the resourceVersion they were
// planned from. Status is applied by the field manager `fettle`. status.report of a trial with the
// built-in trainer belongs to the trainer, with one exception: if the pod has ended and its
// termination message has more than the trainer reported, the store applies the report as the
// trainer's field manager. Learning curves that the caches omit (entries.h) are read again before a
// report with a curve is written. If the Study of a trial is gone, the report is left as it is,
// apart from such an addition.
//
// An object that cannot be read has a condition that says so (entries.h). Such a Study does not
// exist for the controllers, and its trials keep running. The trials of a Study are not listed
// while one of them cannot be read, so no decision is made without it.
//
// A trial belongs to the Study whose uid is in its owner references, whatever its name. Spec is
// written as a merge patch between two serialisations, and status by server-side apply; both
// preserve fields that this version does not know. Nothing is created for a Study being deleted.
// Thread-safe. Client and caches must outlive the store. Create it before the informers start and
// destroy it after they have stopped: the caches call it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/control/clock.h"
#include "core/control/store.h"
#include "kube/client/client.h"
#include "kube/events/event_series.h"
#include "kube/watch/cache.h"
#include "runtime/kubernetes/store/entries.h"
#include "runtime/kubernetes/store/recent_creations.h"
#include "runtime/kubernetes/store/status_writer.h"

namespace fettle::kubernetes {

// The index key of a Study's trials in the cache of Trials: namespace and uid of the Study.
std::string trials_of(const TrialEntry& entry);
// The entry's position under that key.
std::int64_t place_of(const TrialEntry& entry);

class KubeStore final : public control::Store {
 public:
  // `record`: the receiver of events (kube/events/event_recorder.h); returns at once, may be empty.
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
  // Idempotent: succeeds if the same Study already owns a trial of that name.
  Result<api::Trial> create_trial(const api::Trial& trial) override;
  Result<api::Trial> update_trial_spec(const api::Trial& trial) override;
  Result<api::Trial> update_trial_status(const api::Trial& trial) override;

  // Only warnings about trials become events: status shows the rest.
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override;
  void watch(std::function<void(const control::Change&)> listener) override;

 private:
  Result<api::Study> cache_study(const Json& object);
  Result<api::Trial> cache_trial(const Json& object);
  Result<api::Trial> patch_trial_status(api::Trial wanted);
  Status report_for_trainer(api::Trial& trial);
  Status restore_curve(api::Trial& trial);
  void notify(control::Kind kind, const api::Metadata& metadata, const std::string& study);

  kube::Client& client_;
  kube::Cache<StudyEntry>& studies_;
  kube::Cache<TrialEntry>& trials_;
  control::Clock& clock_;
  const Record record_;
  StatusWriter status_;
  RecentCreations creations_;
  std::mutex mutex_;
  std::function<void(const control::Change&)> listener_;  // guarded by mutex_
};

}  // namespace fettle::kubernetes
