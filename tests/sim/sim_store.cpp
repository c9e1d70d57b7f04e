// Writes: admitted (or failed, or crashed), checked, applied, announced.
#include "tests/sim/sim_store.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/study_json.h"
#include "api/trial_json.h"

namespace fettle::sim {

using control::Key;
using control::Kind;

namespace {

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
  for (const auto& [key, trial] : objects.trials) {
    if (trial->spec.study == study.name) trials.push_back(trial);
  }
  std::sort(trials.begin(), trials.end(), [](const api::TrialPtr& a, const api::TrialPtr& b) {
    return a->spec.index < b->spec.index;
  });
  return trials;
}

void check_immutable(const api::Trial& before, const api::Trial& after) {
  CHECK(before.spec.parameters == after.spec.parameters, "parameters changed");
  CHECK(before.spec.seed == after.spec.seed, "the seed changed");
  CHECK(after.status.facts.size() >= before.status.facts.size(), "a fact was lost");
  for (std::size_t i = 0; i < before.status.facts.size(); ++i) {
    CHECK(before.status.facts[i] == after.status.facts[i], "a fact changed");
  }
}

}  // namespace

Result<api::Study> SimStore::get_study(const Key& key) { return find_study(objects_, key); }
Result<api::TrialPtr> SimStore::get_trial(const Key& key) { return find_trial(objects_, key); }
Result<std::vector<api::Study>> SimStore::list_studies() { return all_studies(objects_); }
Result<std::vector<api::TrialPtr>> SimStore::list_trials(const Key& study) {
  return trials_of(objects_, study);
}

Status SimStore::admit() {
  faults_.before_write();
  if (failing_ == 0) return success();
  --failing_;
  return failure_;
}

void SimStore::check_document(const api::Trial& trial) const {
  if (!check_documents_) return;
  const Result<api::Trial> read = api::read_trial(api::write_trial(trial));
  CHECK(read.ok(), read.error().message);
  CHECK(*read == trial, "a Trial is not what its document says: " + api::write_trial(trial).dump());
}

void SimStore::check_document(const api::Study& study) const {
  if (!check_documents_) return;
  const api::ReadStudy read = api::read_study(api::write_study(study));
  for (const api::FieldError& error : read.errors) {
    CHECK(error.path.rfind("status", 0) != 0, error.path + ": " + error.message);
  }
  CHECK(read.study.status == study.status, "a Study's status is not what its document says");
}

void SimStore::changed(Kind kind, const api::Metadata& meta, const std::string& study) {
  if (listener_ && !lose_events_) listener_({kind, {meta.ns, meta.name}, study});
  faults_.after_write();
}

Result<api::Study> SimStore::create_study(const api::Study& study) {
  api::Study stored = study;
  stored.metadata.uid = "uid-" + next_version();
  stored.metadata.resource_version = next_version();
  stored.metadata.generation = 1;
  objects_.studies[{study.metadata.ns, study.metadata.name}] = stored;
  return stored;
}

// Written by the user, not by a controller: no faults here.
Result<api::Study> SimStore::update_study_spec(const api::Study& study) {
  api::Study& stored = objects_.studies.at({study.metadata.ns, study.metadata.name});
  if (stored.spec == study.spec) return stored;
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
  check_document(study);
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
  objects_.studies.erase(found);
  for (const api::TrialPtr& trial : trials_of(objects_, {study.metadata.ns, study.metadata.name})) {
    objects_.trials.erase({trial->metadata.ns, trial->metadata.name});
    changed(Kind::kTrial, trial->metadata, trial->spec.study);
  }
  changed(Kind::kStudy, study.metadata, study.metadata.name);
  return success();
}

Result<api::Trial> SimStore::create_trial(const api::Trial& trial) {
  FETTLE_TRY(admit());
  const Key key{trial.metadata.ns, trial.metadata.name};
  if (objects_.trials.count(key) > 0) {
    return Error{ErrorCode::kAlreadyExists, "Trial " + key.name + " exists"};
  }
  check_document(trial);
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
  check_document(*next);
  check_immutable(*found->second, *next);
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

void SimStore::watch(std::function<void(const control::Change&)> listener) {
  listener_ = std::move(listener);
}

Result<api::Study> StaleStore::get_study(const Key& key) { return find_study(seen_, key); }
Result<api::TrialPtr> StaleStore::get_trial(const Key& key) { return find_trial(seen_, key); }
Result<std::vector<api::Study>> StaleStore::list_studies() { return all_studies(seen_); }
Result<std::vector<api::TrialPtr>> StaleStore::list_trials(const Key& study) {
  return trials_of(seen_, study);
}

}  // namespace fettle::sim
