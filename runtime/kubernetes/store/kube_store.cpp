#include "runtime/kubernetes/store/kube_store.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/study/study_json.h"
#include "api/trial/report.h"
#include "api/trial/trial_json.h"
#include "base/merge_patch.h"
#include "core/names.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"
#include "runtime/kubernetes/job/ownership.h"

namespace fettle::kubernetes {
namespace {

using control::Key;
using control::Kind;

Error missing(const char* kind, const Key& key) {
  return not_found(std::string("there is no ") + kind + " " + key.ns + "/" + key.name);
}

Json labels_of(const api::Metadata& metadata) {
  Json labels = Json::object();
  for (const auto& [name, value] : metadata.labels) labels.set(name, value);
  return labels;
}

// The Study as it appears in the trial's owner references.
api::Metadata owner_of(const api::Trial& trial) {
  api::Metadata owner;
  owner.name = trial.spec.study;
  owner.uid = core::study_uid_of(trial);
  return owner;
}

bool is_owned_by(const Json& object, const std::string& uid) {
  const Json::Array& owners = kube::array_at(object, {"metadata", "ownerReferences"});
  return !uid.empty() && std::ranges::any_of(owners, [&](const Json& owner) {
    return kube::text_at(owner, {"uid"}) == uid;
  });
}

// Fails if the trial's Study is gone or being deleted.
Status check_owner(const api::Trial& trial, const kube::Cache<StudyEntry>& studies) {
  const auto owner = studies.get({trial.metadata.ns, trial.spec.study});
  const bool lives = owner != nullptr && owner->metadata.uid == core::study_uid_of(trial) &&
                     owner->metadata.deleted_ms == 0;
  if (lives) return success();
  return Error{ErrorCode::kConflict, "Study " + trial.spec.study + " is being deleted"};
}

// The trial's Study; null if it is gone or cannot be read.
std::shared_ptr<const api::Study> study_of(const api::Trial& trial,
                                           const kube::Cache<StudyEntry>& studies) {
  const auto entry = studies.get({trial.metadata.ns, trial.spec.study});
  return entry == nullptr ? nullptr : entry->study;
}

}  // namespace

std::int64_t place_of(const TrialEntry& entry) {
  return entry.trial == nullptr ? 0 : entry.trial->spec.index;
}

std::string trials_of(const TrialEntry& entry) {
  return entry.study_uid.empty() ? "" : entry.metadata.ns + "/" + entry.study_uid;
}

KubeStore::KubeStore(kube::Client& client, kube::Cache<StudyEntry>& studies,
                     kube::Cache<TrialEntry>& trials, control::Clock& clock, Record record)
    : client_(client),
      studies_(studies),
      trials_(trials),
      clock_(clock),
      record_(std::move(record)),
      status_(client, clock) {
  trials_.index_by(trials_of, place_of);
  studies_.on_change([this](const auto& before, const auto& after) {
    const StudyEntry& entry = after != nullptr ? *after : *before;
    notify(Kind::kStudy, entry.metadata, entry.metadata.name);
  });
  trials_.on_change([this](const auto& before, const auto& after) {
    const TrialEntry& entry = after != nullptr ? *after : *before;
    notify(Kind::kTrial, entry.metadata, entry.study);
  });
}

// ---- Reading -----------------------------------------------------------------------------------

Result<api::Study> KubeStore::get_study(const Key& key) {
  auto entry = studies_.get({key.ns, key.name});
  if (entry == nullptr) return missing("Study", key);
  if (const auto said =
          status_.report_readability(kube::kStudies, entry->metadata, entry->readability)) {
    (void)cache_study(*said);  // fails if it still cannot be read, but caches the new condition
    entry = studies_.get({key.ns, key.name});
  }
  if (entry == nullptr || entry->study == nullptr) return missing("readable Study", key);
  return *entry->study;
}

Result<api::TrialPtr> KubeStore::get_trial(const Key& key) {
  auto entry = trials_.get({key.ns, key.name});
  if (entry == nullptr) return missing("Trial", key);
  if (const auto said =
          status_.report_readability(kube::kTrials, entry->metadata, entry->readability)) {
    (void)cache_trial(*said);  // as in get_study()
    entry = trials_.get({key.ns, key.name});
  }
  if (entry == nullptr || entry->trial == nullptr) return missing("readable Trial", key);
  return entry->trial;
}

Result<std::vector<api::Study>> KubeStore::list_studies() {
  std::vector<api::Study> studies;
  for (const auto& entry : studies_.all()) {
    if (entry->study != nullptr) studies.push_back(*entry->study);
  }
  return studies;
}

Result<std::vector<api::TrialPtr>> KubeStore::list_trials(const Key& study) {
  std::vector<api::TrialPtr> trials;
  const auto owner = studies_.get({study.ns, study.name});
  if (owner == nullptr) return trials;
  std::string unreadable;
  trials_.visit_group(study.ns + "/" + owner->metadata.uid, [&](const TrialEntry& entry) {
    if (entry.trial != nullptr) {
      trials.push_back(entry.trial);
    } else {
      unreadable = "trial " + entry.metadata.name + " cannot be read: " + entry.readability.why;
    }
  });
  if (!unreadable.empty()) return Error{ErrorCode::kUnavailable, unreadable};
  return trials;
}

std::int64_t KubeStore::count_earlier_trials(const api::Study& study) {
  const auto entries = trials_.all();
  return std::ranges::count_if(entries, [&](const auto& entry) {
    return entry->study == study.metadata.name && entry->metadata.ns == study.metadata.ns &&
           !entry->study_uid.empty() && entry->study_uid != study.metadata.uid;
  });
}

// The answer to a creation is as current as a read that was sent at the same time.
Status KubeStore::confirm(const api::Trial& trial) {
  if (creations_.has_recent(trial.metadata, clock_.now_ms())) return success();
  FETTLE_ASSIGN(const Json object, client_.get(kube::kTrials, key_of(trial.metadata)));
  FETTLE_ASSIGN(const api::Trial stored, cache_trial(object));
  return same_version(stored, trial);
}

// ---- Writing -----------------------------------------------------------------------------------

Result<api::Study> KubeStore::cache_study(const Json& object) {
  FETTLE_ASSIGN(StudyEntry entry, read_study_entry(object));
  const auto study = entry.study;
  const std::string why = entry.readability.why;
  studies_.put(std::move(entry));
  if (study == nullptr) return invalid("what was stored cannot be read: " + why);
  return *study;
}

Result<api::Trial> KubeStore::cache_trial(const Json& object) {
  FETTLE_ASSIGN(TrialEntry entry, read_trial_entry(object));
  const api::TrialPtr trial = entry.trial;
  const std::string why = entry.readability.why;
  trials_.put(std::move(entry));
  if (trial == nullptr) return invalid("what was stored cannot be read: " + why);
  return *trial;
}

Result<api::Study> KubeStore::create_study(const api::Study& study) {
  Json object = envelope(kube::kStudies, study.metadata);
  object.find("metadata")->erase("resourceVersion");
  object.find("metadata")->set("labels", labels_of(study.metadata));
  object.set("spec", api::write_study_spec(study.spec));
  FETTLE_ASSIGN(const kube::Written written,
                client_.create(kube::kStudies, study.metadata.ns, object));
  return cache_study(written.object);
}

Result<api::Study> KubeStore::update_study_spec(const api::Study& study) {
  // If the cache is newer than the version that was planned from, the resourceVersion refuses the
  // patch.
  FETTLE_ASSIGN(const api::Study before, get_study({study.metadata.ns, study.metadata.name}));
  Json patch = Json::object(
      {{"metadata", Json::object({{"resourceVersion", study.metadata.resource_version}})},
       {"spec",
        make_merge_patch(api::write_study_spec(before.spec), api::write_study_spec(study.spec))}});
  FETTLE_ASSIGN(const kube::Written written,
                client_.patch(kube::kStudies, key_of(study.metadata), "", patch));
  return cache_study(written.object);
}

Result<api::Study> KubeStore::update_study_status(const api::Study& study) {
  FETTLE_ASSIGN(const Json stored, status_.apply(kube::kStudies, study.metadata,
                                                 api::write_study_status(study.status)));
  return cache_study(stored);
}

// Guarded by the resourceVersion: an edit made since may have extended ttlAfterFinished.
Status KubeStore::delete_study(const api::Study& study) {
  const api::Metadata& seen = study.metadata;
  Status removed = client_.remove(kube::kStudies, key_of(seen),
                                  {.uid = seen.uid, .resource_version = seen.resource_version});
  const bool is_gone = !removed.ok() && removed.error().code == ErrorCode::kNotFound;
  return is_gone ? success() : removed;
}

Result<api::Trial> KubeStore::create_trial(const api::Trial& trial) {
  FETTLE_TRY(check_owner(trial, studies_));
  Json object = envelope(kube::kTrials, trial.metadata);
  Json& metadata = *object.find("metadata");
  metadata.erase("resourceVersion");
  metadata.set("labels", labels_of(trial.metadata));
  metadata.set("ownerReferences", kube::owner_references(kube::kStudies, owner_of(trial)));
  object.set("spec", api::write_trial_spec(trial.spec));
  const std::int64_t asked_ms = clock_.now_ms();
  const Result<kube::Written> written = client_.create(kube::kTrials, trial.metadata.ns, object);
  if (written.ok()) {
    FETTLE_ASSIGN(api::Trial created, cache_trial(written->object));
    creations_.note(created.metadata, asked_ms, clock_.now_ms());  // saves confirm() a read
    return created;
  }
  if (written.error().code != ErrorCode::kAlreadyExists) return written.error();
  FETTLE_ASSIGN(const Json stored, client_.get(kube::kTrials, key_of(trial.metadata)));
  // Cached whoever owns it: the cache may not have seen it yet.
  Result<api::Trial> adopted = cache_trial(stored);
  return is_owned_by(stored, core::study_uid_of(trial)) ? adopted : written.error();
}

Result<api::Trial> KubeStore::update_trial_spec(const api::Trial& trial) {
  // As in update_study_spec().
  FETTLE_ASSIGN(const api::TrialPtr before, get_trial({trial.metadata.ns, trial.metadata.name}));
  Json patch = Json::object(
      {{"metadata", Json::object({{"resourceVersion", trial.metadata.resource_version}})},
       {"spec",
        make_merge_patch(api::write_trial_spec(before->spec), api::write_trial_spec(trial.spec))}});
  FETTLE_ASSIGN(const kube::Written written,
                client_.patch(kube::kTrials, key_of(trial.metadata), "", patch));
  return cache_trial(written.object);
}

Result<api::Trial> KubeStore::update_trial_status(const api::Trial& trial) {
  api::Trial wanted = trial;
  const std::shared_ptr<const api::Study> study = study_of(trial, studies_);
  if (study == nullptr) return patch_trial_status(std::move(wanted));
  const bool trainers = study->spec.trial.trainer.has_value();
  FETTLE_TRY(trainers ? report_for_trainer(wanted) : restore_curve(wanted));
  Json status = api::write_trial_status(wanted.status);
  if (trainers) status.erase("report");  // the trainer's field manager owns it
  FETTLE_ASSIGN(const Json stored,
                status_.apply(kube::kTrials, wanted.metadata, std::move(status)));
  return cache_trial(stored);
}

// If the Study is gone, it is unknown whether the trainer or the operator owns the report. An apply
// without it would delete the operator's report, and an apply with it would take over the
// trainer's. A merge patch leaves it as it is. Additions of a termination message are written
// before, as the trainer's.
Result<api::Trial> KubeStore::patch_trial_status(api::Trial wanted) {
  FETTLE_ASSIGN(const api::TrialPtr before, get_trial({wanted.metadata.ns, wanted.metadata.name}));
  FETTLE_TRY(report_for_trainer(wanted));
  Json from = api::write_trial_status(before->status);
  Json to = api::write_trial_status(wanted.status);
  for (Json* status : {&from, &to}) status->erase("report");
  const Json patch = Json::object(
      {{"metadata", Json::object({{"resourceVersion", wanted.metadata.resource_version}})},
       {"status", make_merge_patch(from, to)}});
  FETTLE_ASSIGN(const kube::Written written,
                client_.patch(kube::kTrials, key_of(wanted.metadata), "status", patch));
  return cache_trial(written.object);
}

// Writes only the additions of the termination message: its trainer has ended and writes no more.
Status KubeStore::report_for_trainer(api::Trial& trial) {
  if (!trial.status.report) return success();
  const auto entry = trials_.get(key_of(trial.metadata));
  const bool known = entry != nullptr && entry->trial != nullptr && entry->trial->status.report &&
                     api::same_report(*entry->trial->status.report, *trial.status.report);
  if (known) return success();
  Json object = envelope(kube::kTrials, trial.metadata);
  object.set("status", Json::object({{"report", api::write_report(*trial.status.report)}}));
  FETTLE_ASSIGN(const kube::Written written, client_.apply(kube::kTrials, key_of(trial.metadata),
                                                           "status", object, api::kReportManager));
  FETTLE_ASSIGN(const api::Trial stored, cache_trial(written.object));
  // The status is applied next, and would conflict with the report's own write.
  trial.metadata.resource_version = stored.metadata.resource_version;
  return success();
}

// Applying a report without its curve would delete the stored curve.
Status KubeStore::restore_curve(api::Trial& trial) {
  const auto entry = trials_.get(key_of(trial.metadata));
  if (entry == nullptr || !entry->is_trimmed || !trial.status.report) return success();
  FETTLE_ASSIGN(const Json object, client_.get(kube::kTrials, key_of(trial.metadata)));
  FETTLE_ASSIGN(api::Trial stored, api::read_trial(object));
  FETTLE_TRY(same_version(stored, trial));
  if (stored.status.report) trial.status.report->history = stored.status.report->history;
  return success();
}

// ---- Notifying ---------------------------------------------------------------------------------

void KubeStore::record_event(const control::Change& about, bool warning, const std::string& reason,
                             const std::string& message, std::int64_t now_ms) {
  const bool is_study = about.kind == Kind::kStudy;
  if (!record_ || (!is_study && !warning)) return;
  kube::Occurrence occurrence;
  occurrence.about.resource = is_study ? kube::kStudies : kube::kTrials;
  occurrence.about.key = {about.key.ns, about.key.name};
  if (const auto study = studies_.get(occurrence.about.key); is_study && study != nullptr) {
    occurrence.about.uid = study->metadata.uid;
  }
  if (const auto trial = trials_.get(occurrence.about.key); !is_study && trial != nullptr) {
    occurrence.about.uid = trial->metadata.uid;
  }
  occurrence.warning = warning;
  occurrence.reason = reason;
  occurrence.note = message;
  occurrence.at_ms = now_ms;
  record_(std::move(occurrence));
}

void KubeStore::watch(std::function<void(const control::Change&)> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void KubeStore::notify(Kind kind, const api::Metadata& metadata, const std::string& study) {
  std::function<void(const control::Change&)> listener;
  {
    const std::lock_guard lock(mutex_);
    listener = listener_;
  }
  if (listener) listener({kind, {metadata.ns, metadata.name}, study});
}

}  // namespace fettle::kubernetes
