// Writes: admitted (or failed, or crashed), checked, applied, announced.
#include "tests/sim/sim_store.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/fields/field_errors.h"
#include "api/study/study_json.h"
#include "api/testing/rulebook.h"
#include "api/trial/trial_json.h"
#include "core/names.h"

namespace fettle::sim {

using control::Key;
using control::Kind;

namespace {

// From one deletion of the garbage collector to the next.
constexpr std::int64_t kCollectionMs = 250;

Error conflict(const std::string& name) {
  return {ErrorCode::kConflict, name + " has changed since it was read"};
}

Result<api::Study> find_study(const SimStore::Objects& objects, const Key& key) {
  const auto found = objects.studies.find(key);
  if (found == objects.studies.end()) return not_found("no Study " + key.name);
  return found->second;
}

Result<api::TrialPtr> find_trial(const SimStore::Objects& objects, const Key& key) {
  const auto found = objects.trials.find(key);
  if (found == objects.trials.end()) return not_found("no Trial " + key.name);
  return found->second;
}

std::vector<api::Study> all_studies(const SimStore::Objects& objects) {
  std::vector<api::Study> studies;
  for (const auto& [key, study] : objects.studies) studies.push_back(study);
  return studies;
}

std::vector<api::TrialPtr> trials_of(const SimStore::Objects& objects, const Key& study) {
  std::vector<api::TrialPtr> trials;
  const auto owner = objects.studies.find(study);
  if (owner == objects.studies.end()) return trials;
  for (const auto& [key, trial] : objects.trials) {
    if (core::belongs_to(*trial, owner->second)) trials.push_back(trial);
  }
  std::sort(trials.begin(), trials.end(), [](const api::TrialPtr& a, const api::TrialPtr& b) {
    return a->spec.index < b->spec.index;
  });
  return trials;
}

Status verdict(const std::vector<api::FieldError>& errors) {
  return errors.empty() ? success() : Status(invalid(api::to_string(errors)));
}

// Facts are never taken back; the API server does not know that.
void check_facts(const api::Trial& before, const api::Trial& after) {
  CHECK(after.status.facts.size() >= before.status.facts.size(), "a fact was lost");
  for (std::size_t i = 0; i < before.status.facts.size(); ++i) {
    CHECK(before.status.facts[i] == after.status.facts[i], "a fact changed");
  }
}

// Counts trials of deleted Studies with the name of this one.
std::int64_t count_earlier(const SimStore::Objects& objects, const api::Study& study) {
  return std::count_if(objects.trials.begin(), objects.trials.end(), [&](const auto& entry) {
    const api::Trial& trial = *entry.second;
    const std::string owner = core::study_uid_of(trial);
    return trial.spec.study == study.metadata.name && !owner.empty() && owner != study.metadata.uid;
  });
}

}  // namespace

Result<api::Study> SimStore::get_study(const Key& key) { return find_study(objects_, key); }
Result<api::TrialPtr> SimStore::get_trial(const Key& key) { return find_trial(objects_, key); }
Result<std::vector<api::Study>> SimStore::list_studies() { return all_studies(objects_); }
Result<std::vector<api::TrialPtr>> SimStore::list_trials(const Key& study) {
  return trials_of(objects_, study);
}
std::int64_t SimStore::count_earlier_trials(const api::Study& study) {
  return count_earlier(objects_, study);
}

Status SimStore::admit() {
  faults_.before_write();
  if (!refuse_writes_.empty()) return Error{ErrorCode::kUnavailable, refuse_writes_};
  if (failing_ == 0) return success();
  --failing_;
  return failure_;
}

// Returns the API server's verdict on the document that replaces `before`. Only changes of spec are
// compared with the old one, so it is omitted if spec is the same.
Status SimStore::judge(const api::Trial* before, const api::Trial& after) const {
  const Json document = api::write_trial(after);
  if (check_documents_) {
    const Result<api::Trial> read = api::read_trial(document);
    CHECK(!read.ok() || *read == after,
          "a Trial is not what its document says: " + document.dump());
  }
  const bool changes = before != nullptr && !(before->spec == after.spec);
  return verdict(api::errors_of_write(changes ? api::write_trial(*before) : Json(), document));
}

Status SimStore::judge(const api::Study* before, const api::Study& after) const {
  const Json document = api::write_study(after);
  if (check_documents_) {
    const api::ReadStudy read = api::read_study(document);
    CHECK(read.study.status == after.status, "a Study's status is not what its document says");
  }
  auto errors = api::errors_of_write(Json(), document);
  const bool changes = before != nullptr && (!errors.empty() || !(before->spec == after.spec));
  if (changes) errors = api::errors_of_write(api::write_study(*before), document);
  return verdict(errors);
}

void SimStore::changed(Kind kind, const api::Metadata& meta, const std::string& study) {
  if (listener_ && !lose_events_) listener_({kind, {meta.ns, meta.name}, study});
  faults_.after_write();
}

Result<api::Study> SimStore::create_study(const api::Study& study) {
  FETTLE_TRY(judge(nullptr, study));
  return put_study(study);
}

api::Study SimStore::put_study(const api::Study& study) {
  api::Study stored = study;
  stored.metadata.uid = "uid-" + next_version();
  stored.metadata.resource_version = next_version();
  stored.metadata.generation = 1;
  objects_.studies[{study.metadata.ns, study.metadata.name}] = stored;
  return stored;
}

// Written by the user, not by a controller: no faults.
Result<api::Study> SimStore::update_study_spec(const api::Study& study) {
  api::Study& stored = objects_.studies.at({study.metadata.ns, study.metadata.name});
  if (stored.spec == study.spec) return stored;
  FETTLE_TRY(judge(&stored, study));
  stored.spec = study.spec;
  ++stored.metadata.generation;
  stored.metadata.resource_version = next_version();
  if (listener_) {
    listener_({Kind::kStudy, {study.metadata.ns, study.metadata.name}, study.metadata.name});
  }
  return stored;
}

Result<api::Study> SimStore::update_study_status(const api::Study& study) {
  FETTLE_TRY(admit());
  api::Study& stored = objects_.studies.at({study.metadata.ns, study.metadata.name});
  if (stored.metadata.resource_version != study.metadata.resource_version) {
    return conflict(study.metadata.name);
  }
  api::Study next = stored;
  next.status = study.status;
  FETTLE_TRY(judge(&stored, next));
  stored.status = study.status;
  stored.metadata.resource_version = next_version();
  status_times_.push_back(study.status.updated_ms);
  const api::Study copy = stored;
  changed(Kind::kStudy, copy.metadata, copy.metadata.name);
  return copy;
}

Status SimStore::delete_study(const api::Study& study) {
  FETTLE_TRY(admit());
  const auto found = objects_.studies.find({study.metadata.ns, study.metadata.name});
  if (found == objects_.studies.end()) return not_found("no Study " + study.metadata.name);
  const api::Metadata& stored = found->second.metadata;
  const bool as_seen = stored.uid == study.metadata.uid &&
                       stored.resource_version == study.metadata.resource_version;
  if (!as_seen) return conflict(study.metadata.name);
  erase_study({study.metadata.ns, study.metadata.name}, /*now_ms=*/0);
  changed(Kind::kStudy, study.metadata, study.metadata.name);
  return success();
}

Result<api::Trial> SimStore::create_trial(const api::Trial& trial) {
  FETTLE_TRY(admit());
  if (refuse_trials_) return Error{ErrorCode::kForbidden, refuse_trials_()};
  const Key key{trial.metadata.ns, trial.metadata.name};
  if (objects_.trials.count(key) > 0) {
    return Error{ErrorCode::kAlreadyExists, "Trial " + key.name + " exists"};
  }
  FETTLE_TRY(judge(nullptr, trial));
  api::Trial stored = trial;
  stored.metadata.uid = "uid-" + next_version();
  stored.metadata.resource_version = next_version();
  stored.metadata.generation = 1;
  objects_.trials[key] = std::make_shared<api::Trial>(stored);
  ++trials_created_;
  changed(Kind::kTrial, stored.metadata, stored.spec.study);
  return stored;
}

Result<api::Trial> SimStore::put_trial(const api::Trial& trial, bool spec) {
  FETTLE_TRY(admit());
  const auto found = objects_.trials.find({trial.metadata.ns, trial.metadata.name});
  if (found == objects_.trials.end()) return not_found("no Trial " + trial.metadata.name);
  if (found->second->metadata.resource_version != trial.metadata.resource_version) {
    return conflict(trial.metadata.name);
  }
  auto next = std::make_shared<api::Trial>(*found->second);
  if (spec) next->spec = trial.spec;
  if (spec) ++next->metadata.generation;
  if (!spec) next->status = trial.status;
  FETTLE_TRY(judge(found->second.get(), *next));
  check_facts(*found->second, *next);
  next->metadata.resource_version = next_version();
  found->second = next;
  changed(Kind::kTrial, next->metadata, next->spec.study);
  return *next;
}

Result<api::Trial> SimStore::update_trial_spec(const api::Trial& trial) {
  return put_trial(trial, /*spec=*/true);
}

Result<api::Trial> SimStore::update_trial_status(const api::Trial& trial) {
  return put_trial(trial, /*spec=*/false);
}

void SimStore::record_event(const control::Change&, bool, const std::string& reason,
                            const std::string&, std::int64_t) {
  events_.push_back(reason);
}

void SimStore::delete_study(const Key& key, std::int64_t now_ms) {
  erase_study(key, now_ms);
  if (listener_) listener_({Kind::kStudy, key, key.name});
}

// Trials are deleted in the background, one after the other, like by the garbage collector.
void SimStore::erase_study(const Key& study, std::int64_t now_ms) {
  std::int64_t at_ms = now_ms;
  for (const auto& [key, trial] : objects_.trials) {
    const bool orphan = trial->spec.study == study.name && garbage_.count(key) == 0;
    if (orphan) garbage_[key] = at_ms += kCollectionMs;
  }
  objects_.studies.erase(study);
}

std::vector<std::string> SimStore::collect_garbage(std::int64_t now_ms) {
  std::vector<std::string> gone;
  for (auto it = garbage_.begin(); it != garbage_.end();) {
    if (it->second > now_ms) {
      ++it;
      continue;
    }
    const Key key = it->first;
    it = garbage_.erase(it);
    const auto found = objects_.trials.find(key);
    if (found == objects_.trials.end()) continue;
    const std::string study = found->second->spec.study;
    objects_.trials.erase(found);
    gone.push_back(key.name);
    if (listener_ && !lose_events_) listener_({Kind::kTrial, key, study});
  }
  return gone;
}

std::int64_t SimStore::next_ms() const {
  std::int64_t next = -1;
  for (const auto& [key, at_ms] : garbage_) next = next < 0 ? at_ms : std::min(next, at_ms);
  return next;
}

void SimStore::watch(std::function<void(const control::Change&)> listener) {
  listener_ = std::move(listener);
}

Result<api::Study> StaleStore::get_study(const Key& key) { return find_study(seen_, key); }
Result<api::TrialPtr> StaleStore::get_trial(const Key& key) { return find_trial(seen_, key); }
Result<std::vector<api::Study>> StaleStore::list_studies() { return all_studies(seen_); }
Result<std::vector<api::TrialPtr>> StaleStore::list_trials(const Key& study) {
  return trials_of(seen_, study);
}
std::int64_t StaleStore::count_earlier_trials(const api::Study& study) {
  return count_earlier(seen_, study);
}

}  // namespace fettle::sim
