#include "runtime/local/store/sqlite_store.h"

#include <algorithm>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <type_traits>
#include <utility>

#include "runtime/local/store/future_times.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {
namespace {

constexpr std::int64_t kBeforeAllVersions = -1;

// A version 4 UUID, as Kubernetes gives out.
std::string random_uid() { return boost::uuids::to_string(boost::uuids::random_generator()()); }

template <class Object>
std::string describe(const Object& object) {
  return local::describe(change_of(object).kind, object.metadata.name);
}

// The object as it is stored; kNotFound.
Result<api::Study> stored(const StoredObjects& objects, const api::Study& like) {
  return objects.study(change_of(like).key);
}

Result<api::Trial> stored(const StoredObjects& objects, const api::Trial& like) {
  FETTLE_ASSIGN(const api::TrialPtr trial, objects.trial(change_of(like).key));
  return *trial;
}

template <class Object>
Status check_version(const Object& wanted, const Object& stored) {
  if (wanted.metadata.resource_version == stored.metadata.resource_version) return success();
  return Error{ErrorCode::kConflict, describe(wanted) + " has changed since it was read"};
}

// "", or a sentence: fields of a newer version decide nothing here.
std::string unknown_fields_caveat(const std::string& path, const StoredObjects& objects) {
  const std::string names = objects.unknown_fields();
  if (names.empty()) return "";
  return path + " has fields that this fettle does not know (" + names +
         "): another version wrote them. They are kept, and nothing is done by them";
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, Mode mode,
                                                       std::shared_ptr<control::Clock> clock) {
  FETTLE_ASSIGN(auto database, StudyDatabase::open(path, mode == Mode::kReadWrite));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(database), std::move(clock)));
  FETTLE_TRY(store->refresh());
  for (const std::string& warning :
       {store->database_.journal_warning(), unknown_fields_caveat(path, store->objects_),
        store->database_.frozen_warning()}) {
    if (!warning.empty()) store->warnings_.push_back(warning);
  }
  return store;
}

Status SqliteStore::refresh() {
  FETTLE_ASSIGN(const bool changed, database_.has_changed());
  if (!changed) return success();
  const auto load = [this](control::Kind kind, const std::string& json) {
    return objects_.load(kind, json);
  };
  // Versions only grow and no object is ever removed, unless the file was replaced.
  if (objects_.version() > 0) {
    FETTLE_ASSIGN(const StudyDatabase::Extent extent, database_.extent());
    if (extent.version >= objects_.version()) {
      FETTLE_TRY(database_.read_objects(objects_.version(), load));
      if (objects_.count() >= extent.count) return success();
    }
  }
  objects_ = StoredObjects();
  return database_.read_objects(kBeforeAllVersions, load);
}

// ---- Reading -----------------------------------------------------------------------------------

Result<api::Study> SqliteStore::get_study(const control::Key& key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  return objects_.study(key);
}

Result<api::TrialPtr> SqliteStore::get_trial(const control::Key& key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  return objects_.trial(key);
}

Result<std::vector<api::Study>> SqliteStore::list_studies() {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  return objects_.studies();
}

Result<std::vector<api::TrialPtr>> SqliteStore::list_trials(const control::Key& study) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  return objects_.trials_of(study);
}

Result<control::Store::StudyAndTrials> SqliteStore::read_other(const control::Key& study) {
  Result<StudyAndTrials> here = control::Store::read_other(study);
  if (here.ok() || here.error().code != ErrorCode::kNotFound) return here;
  const std::string& path = database_.path();
  const std::string folder = path.substr(0, path.find_last_of('/'));
  const Layout layout = make_layout(folder, study.name);
  const auto other = open(layout.database(), Mode::kReadOnly, clock_);
  // The interface's own read_other(), which reads that store and does not recurse.
  if (other.ok()) return (*other)->control::Store::read_other(study);
  if (other.error().code != ErrorCode::kNotFound) return other.error();
  return not_found("there is no study " + study.name + " in " + folder);
}

// ---- Writing -----------------------------------------------------------------------------------

template <class Object>
Status SqliteStore::keep(const Object* before, Object& object) {
  const std::int64_t version = objects_.version() + 1;
  object.metadata.resource_version = std::to_string(version);
  FETTLE_ASSIGN(StoredDocument document, objects_.document_of(before, object));
  FETTLE_TRY(database_.put_object(change_of(object), version, document.text));
  objects_.keep(object, std::move(document));
  return success();
}

template <class Object>
Result<Object> SqliteStore::create(const Object& object) {
  Object created = object;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stored(objects_, object).ok()) {
      return Error{ErrorCode::kAlreadyExists, describe(object) + " exists already"};
    }
    created.metadata.uid = random_uid();
    created.metadata.generation = 1;
    created.metadata.created_ms = clock_->now_ms();
    // Checkpoints are on the disk under names and uids of objects, so these must not be rolled
    // back.
    const Object* const none = nullptr;
    FETTLE_TRY(database_.set_durable(true));
    const Status kept = keep(none, created);
    FETTLE_TRY(database_.set_durable(false));
    if (!kept.ok()) return kept.error();
  }
  notify(change_of(created));
  return created;
}

template <class Object, class Part>
Result<Object> SqliteStore::update(const Object& object, Part Object::*part) {
  Object changed;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    FETTLE_ASSIGN(const Object before, stored(objects_, object));
    FETTLE_TRY(check_version(object, before));
    if (before.*part == object.*part) return before;
    changed = before;
    changed.*part = object.*part;
    if constexpr (std::is_same_v<Part, decltype(object.spec)>) ++changed.metadata.generation;
    FETTLE_TRY(keep(&before, changed));
  }
  notify(change_of(changed));
  return changed;
}

Result<api::Study> SqliteStore::create_study(const api::Study& study) { return create(study); }

Result<api::Study> SqliteStore::update_study_spec(const api::Study& study) {
  return update(study, &api::Study::spec);
}

Result<api::Study> SqliteStore::update_study_status(const api::Study& study) {
  return update(study, &api::Study::status);
}

Result<api::Trial> SqliteStore::create_trial(const api::Trial& trial) { return create(trial); }

Result<api::Trial> SqliteStore::update_trial_spec(const api::Trial& trial) {
  return update(trial, &api::Trial::spec);
}

Result<api::Trial> SqliteStore::update_trial_status(const api::Trial& trial) {
  return update(trial, &api::Trial::status);
}

Result<std::int64_t> SqliteStore::clamp_future_times() {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::int64_t now_ms = clock_->now_ms();
  std::int64_t ahead_ms = 0;
  const auto end_for = [&](const auto& before) -> Status {
    auto after = before;
    const std::int64_t ahead = local::clamp_future_times(after, now_ms);
    if (ahead <= 0) return success();
    ahead_ms = std::max(ahead_ms, ahead);
    return keep(&before, after);
  };
  for (const api::Study& study : objects_.studies()) FETTLE_TRY(end_for(study));
  for (const api::TrialPtr& trial : objects_.trials()) FETTLE_TRY(end_for(*trial));
  return ahead_ms;
}

void SqliteStore::check_room() {
  std::vector<control::Change> waiting;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!database_.regains_room()) return;
    for (const api::Study& study : objects_.studies()) waiting.push_back(change_of(study));
    for (const api::TrialPtr& trial : objects_.trials()) waiting.push_back(change_of(*trial));
  }
  for (const control::Change& change : waiting) notify(change);
}

// ---- Events and notices ------------------------------------------------------------------------

void SqliteStore::record_event(const control::Change& about, bool warning,
                               const std::string& reason, const std::string& message,
                               std::int64_t now_ms) {
  const std::lock_guard<std::mutex> guard(mutex_);
  database_.record_event(about, warning, reason, message, now_ms);
}

Result<std::vector<StoredEvent>> SqliteStore::list_events(const control::Key& study,
                                                          std::int64_t limit) {
  const std::lock_guard<std::mutex> guard(mutex_);
  return database_.list_events(study, limit);
}

void SqliteStore::watch(std::function<void(const control::Change&)> listener) {
  const std::lock_guard<std::mutex> guard(mutex_);
  listener_ = std::move(listener);
}

// listener_ is set before the first write and never again, so it is read without the mutex.
void SqliteStore::notify(const control::Change& change) {
  if (listener_) listener_(change);
}

}  // namespace fettle::local
