#include "runtime/local/store/sqlite_store.h"

#include <algorithm>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <type_traits>
#include <utility>

#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "runtime/local/store/future_times.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/store/network_disk.h"
#include "runtime/local/store/sqlite.h"
#include "runtime/local/store/stored_json.h"

namespace fettle::local {
namespace {

using control::Kind;

// Stored in the file's user_version; a file with a higher version is refused.
constexpr std::int64_t kSchemaVersion = 1;
constexpr std::int64_t kDropEventsEvery = 1000;
constexpr std::size_t kMostUnknown = 5;  // unknown fields that a warning names

Kind kind_of(const api::Study&) { return Kind::kStudy; }
Kind kind_of(const api::Trial&) { return Kind::kTrial; }
const std::string& study_of(const api::Study& study) { return study.metadata.name; }
const std::string& study_of(const api::Trial& trial) { return trial.spec.study; }

const char* kind_name(Kind kind) { return kind == Kind::kStudy ? "Study" : "Trial"; }

std::string describe(Kind kind, const std::string& name) {
  return std::string(kind == Kind::kStudy ? "study " : "trial ") + name;
}

control::Key key_of(const api::Metadata& metadata) { return {metadata.ns, metadata.name}; }

// A version 4 UUID, as Kubernetes gives out.
std::string random_uid() { return boost::uuids::to_string(boost::uuids::random_generator()()); }

std::int64_t version_of(const api::Metadata& metadata) {
  std::int64_t version = 0;
  const std::string& text = metadata.resource_version;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

Error missing(Kind kind, const std::string& name) {
  return not_found("there is no " + describe(kind, name));
}

// Reads strictly a document that a person wrote, or leniently an object as any version may have
// stored it.
Result<api::Study> read_object(const Json& document, api::UnknownFields unknown,
                               const api::Study*) {
  api::ReadStudy read = api::read_study(document, unknown);
  if (read.errors.empty()) return std::move(read.study);
  return invalid(read.errors[0].path + ": " + read.errors[0].message);
}

Result<api::Trial> read_object(const Json& document, api::UnknownFields unknown,
                               const api::Trial*) {
  return api::read_trial(document, unknown);
}

template <class Object>
Result<Object> read_stored(const Json& document) {
  const Object* const kind = nullptr;
  return read_object(document, api::UnknownFields::kIgnoredWithBounds, kind);
}

Json write_object(const api::Study& study) { return api::write_study(study); }
Json write_object(const api::Trial& trial) { return api::write_trial(trial); }

// One object that cannot be read back would make the whole store unreadable. New objects must be
// valid; stored objects may be valid for another version only.
template <class Object>
Status check_readable(const Object& object, const std::string& json, bool is_new) {
  FETTLE_ASSIGN(const Json document, parse_json(json));
  const auto fields =
      is_new ? api::UnknownFields::kMistakes : api::UnknownFields::kIgnoredWithBounds;
  const Result<Object> read = read_object(document, fields, &object);
  if (read.ok()) return success();
  return invalid(describe(kind_of(object), object.metadata.name) +
                 " cannot be stored: " + read.error().message);
}

Status check_version(Kind kind, const api::Metadata& wanted, const api::Metadata& stored) {
  if (wanted.resource_version == stored.resource_version) return success();
  return Error{ErrorCode::kConflict,
               describe(kind, wanted.name) + " has changed since it was read"};
}

}  // namespace

SqliteStore::SqliteStore(std::unique_ptr<Sqlite> database, Mode mode, std::string path,
                         std::shared_ptr<control::Clock> clock)
    : database_(std::move(database)),
      mode_(mode),
      path_(std::move(path)),
      clock_(std::move(clock)) {}

SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, Mode mode,
                                                       std::shared_ptr<control::Clock> clock) {
  FETTLE_ASSIGN(auto database, Sqlite::open(path, mode == Mode::kReadWrite));
  std::unique_ptr<SqliteStore> store(
      new SqliteStore(std::move(database), mode, path, std::move(clock)));
  FETTLE_ASSIGN(const std::int64_t schema, store->database_->number("PRAGMA user_version"));
  if (schema > kSchemaVersion) {
    return io_error(path + " was written by a newer fettle (schema " + std::to_string(schema) +
                    ", this one knows " + std::to_string(kSchemaVersion) +
                    "); use that one, or another directory");
  }
  if (mode == Mode::kReadWrite) {
    FETTLE_TRY(store->choose_journal());
    if (schema < kSchemaVersion) FETTLE_TRY(store->make_schema());
    // Fail now rather than at the first write.
    FETTLE_TRY(store->database_->run("BEGIN IMMEDIATE"));
    FETTLE_TRY(store->database_->run("ROLLBACK"));
  }
  FETTLE_TRY(store->load());
  store->note_unknown();
  store->note_frozen();
  return store;
}

// A write-ahead log needs memory that all readers share, which a network file system lacks. Other
// file systems may refuse it as well; SQLite then says so.
Status SqliteStore::choose_journal() {
  const std::string network = network_file_system(path_);
  has_log_ = network.empty();
  if (has_log_) {
    FETTLE_ASSIGN(const std::string mode, database_->text("PRAGMA journal_mode=WAL"));
    has_log_ = mode == "wal";
    if (!has_log_) {
      warnings_.push_back("SQLite can have no write-ahead log for " + path_ + " (it answers \"" +
                          mode + "\"): every write waits for the disk; better use another: -C DIR");
    }
  } else {
    FETTLE_TRY(database_->run("PRAGMA journal_mode=DELETE"));
    warnings_.push_back(network_warning(path_, network));
  }
  return database_->set_durable(!has_log_);
}

// Fields of a newer version decide nothing here, so a warning names them.
void SqliteStore::note_unknown() {
  std::string names;
  for (const auto& [key, document] : foreign_) {
    if (key.first != Kind::kStudy) continue;
    const Json known = write_object(studies_[key.second]);
    for (const std::string& path : unknown_paths(document, known, kMostUnknown)) {
      names += (names.empty() ? "" : ", ") + path;
    }
  }
  if (foreign_.empty()) return;
  if (names.empty()) names = "some of its trials'";
  warnings_.push_back(path_ + " has fields that this fettle does not know (" + names +
                      "): another version wrote them. They are kept, and nothing is done by them");
}

void SqliteStore::note_frozen() {
  std::error_code code;
  const auto log = std::filesystem::file_size(path_ + "-wal", code);
  if (!database_->is_frozen() || code || log == 0) return;
  warnings_.push_back(path_ + "-wal holds the newest changes and cannot be read from here, since " +
                      "its directory cannot be written: what is shown may be old");
}

Status SqliteStore::make_schema() {
  FETTLE_TRY(database_->run("BEGIN IMMEDIATE"));
  FETTLE_TRY(database_->run(
      "CREATE TABLE IF NOT EXISTS objects(kind TEXT NOT NULL, namespace TEXT NOT NULL, "
      "name TEXT NOT NULL, study TEXT NOT NULL, resource_version INTEGER NOT NULL, "
      "json TEXT NOT NULL, PRIMARY KEY(kind, namespace, name)) WITHOUT ROWID"));
  FETTLE_TRY(database_->run(
      "CREATE TABLE IF NOT EXISTS events(id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, "
      "kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, study TEXT NOT NULL, "
      "warning INTEGER NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL)"));
  FETTLE_TRY(database_->run("PRAGMA user_version=1"));
  return database_->run("COMMIT");
}

Status SqliteStore::load() {
  FETTLE_ASSIGN(data_version_, database_->number("PRAGMA data_version"));
  studies_.clear();
  trials_.clear();
  by_study_.clear();
  foreign_.clear();
  FETTLE_ASSIGN(const std::int64_t schema, database_->number("PRAGMA user_version"));
  if (schema == 0) return success();  // a runner is just creating it
  Status loaded = success();
  FETTLE_TRY(database_->run("SELECT kind, json FROM objects", {}, [&](const Sqlite::Row& row) {
    const auto* kind = std::get_if<std::string>(&row[0]);
    const auto* json = std::get_if<std::string>(&row[1]);
    if (!loaded.ok() || kind == nullptr || json == nullptr) return;
    loaded = load_row(*kind == kind_name(Kind::kStudy) ? Kind::kStudy : Kind::kTrial, *json);
  }));
  if (loaded.ok()) return success();
  return io_error(path_ + " holds an object that cannot be read: " + loaded.error().message +
                  "; if a newer fettle wrote it, use that one; else restore it from a copy, or "
                  "move it away to start the Study anew");
}

Status SqliteStore::load_row(Kind kind, const std::string& json) {
  FETTLE_ASSIGN(Json document, parse_json(json));
  const auto note = [&](const api::Metadata& metadata, const Json& known) {
    version_ = std::max(version_, version_of(metadata));
    const bool is_foreign = document != known && !unknown_paths(document, known, 1).empty();
    if (is_foreign) foreign_[{kind, key_of(metadata)}] = std::move(document);
  };
  if (kind == Kind::kTrial) {
    FETTLE_ASSIGN(api::Trial trial, read_stored<api::Trial>(document));
    note(trial.metadata, write_object(trial));
    const auto shared = std::make_shared<const api::Trial>(std::move(trial));
    trials_[key_of(shared->metadata)] = shared;
    by_study_[{shared->metadata.ns, shared->spec.study}][shared->spec.index] = shared;
    return success();
  }
  FETTLE_ASSIGN(api::Study study, read_stored<api::Study>(document));
  note(study.metadata, write_object(study));
  studies_[key_of(study.metadata)] = std::move(study);
  return success();
}

// A reader sees the runner's later writes.
Status SqliteStore::refresh() {
  if (mode_ == Mode::kReadWrite) return success();
  FETTLE_ASSIGN(const std::int64_t now, database_->number("PRAGMA data_version"));
  return now == data_version_ ? success() : load();
}

// ---- Reading -----------------------------------------------------------------------------------

Result<api::Study> SqliteStore::get_study(const control::Key& key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  const auto found = studies_.find(key);
  if (found == studies_.end()) return missing(Kind::kStudy, key.name);
  return found->second;
}

Result<api::TrialPtr> SqliteStore::get_trial(const control::Key& key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  const auto found = trials_.find(key);
  if (found == trials_.end()) return missing(Kind::kTrial, key.name);
  return found->second;
}

Result<std::vector<api::Study>> SqliteStore::list_studies() {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  std::vector<api::Study> studies;
  for (const auto& [key, study] : studies_) studies.push_back(study);
  return studies;
}

Result<std::vector<api::TrialPtr>> SqliteStore::list_trials(const control::Key& study) {
  const std::lock_guard<std::mutex> guard(mutex_);
  FETTLE_TRY(refresh());
  std::vector<api::TrialPtr> trials;
  const auto found = by_study_.find(study);
  if (found == by_study_.end()) return trials;
  trials.reserve(found->second.size());
  for (const auto& [index, trial] : found->second) trials.push_back(trial);
  return trials;
}

Result<control::Store::StudyAndTrials> SqliteStore::read_other(const control::Key& study) {
  Result<StudyAndTrials> here = control::Store::read_other(study);
  if (here.ok() || here.error().code != ErrorCode::kNotFound) return here;
  const std::string folder = path_.substr(0, path_.find_last_of('/'));
  const Layout layout = make_layout(folder, study.name);
  const auto other = open(layout.database(), Mode::kReadOnly, clock_);
  // The interface's own read_other(), which reads that store and does not recurse.
  if (other.ok()) return (*other)->control::Store::read_other(study);
  if (other.error().code != ErrorCode::kNotFound) return other.error();
  return not_found("there is no study " + study.name + " in " + folder);
}

// ---- Writing -----------------------------------------------------------------------------------

Status SqliteStore::put(Kind kind, const api::Metadata& metadata, const std::string& study,
                        const std::string& json) {
  if (mode_ == Mode::kReadOnly) return io_error(path_ + " is open for reading only");
  Status written = database_->run(
      "INSERT OR REPLACE INTO objects VALUES(?, ?, ?, ?, ?, ?)",
      {kind_name(kind), metadata.ns, metadata.name, study, version_of(metadata), json});
  if (!written.ok() && database_->is_full()) no_room_ = written.error().message;
  if (written.ok()) version_ = version_of(metadata);
  return written;
}

// Keeps fields of another version, which this version does not know.
template <class Object>
Status SqliteStore::write(const Object* before, const Object& after) {
  Json document = write_object(after);
  const auto foreign = foreign_.find({kind_of(after), key_of(after.metadata)});
  const bool is_foreign = before != nullptr && foreign != foreign_.end();
  if (is_foreign) document = carry_over(foreign->second, write_object(*before), document);
  const std::string json = document.dump();
  FETTLE_TRY(check_readable(after, json, before == nullptr));
  FETTLE_TRY(put(kind_of(after), after.metadata, study_of(after), json));
  if (is_foreign) foreign->second = std::move(document);
  return success();
}

// Writes the object under the next resourceVersion, then keeps it in memory.
Status SqliteStore::keep(const api::Study* before, api::Study& study) {
  study.metadata.resource_version = std::to_string(version_ + 1);
  FETTLE_TRY(write(before, study));
  studies_[key_of(study.metadata)] = study;
  return success();
}

Status SqliteStore::keep(const api::Trial* before, api::Trial& trial) {
  trial.metadata.resource_version = std::to_string(version_ + 1);
  FETTLE_TRY(write(before, trial));
  const auto shared = std::make_shared<const api::Trial>(trial);
  trials_[key_of(trial.metadata)] = shared;
  by_study_[{trial.metadata.ns, trial.spec.study}][trial.spec.index] = shared;
  return success();
}

// Checkpoints are on the disk under names and uids of objects, so these must not be rolled back.
template <class Object>
Status SqliteStore::keep_for_good(Object& created) {
  const Object* const none = nullptr;
  FETTLE_TRY(database_->set_durable(true));
  Status kept = keep(none, created);
  FETTLE_TRY(database_->set_durable(!has_log_));
  return kept;
}

Result<api::Study> SqliteStore::stored(const api::Study& like) const {
  const auto found = studies_.find(key_of(like.metadata));
  if (found == studies_.end()) return missing(Kind::kStudy, like.metadata.name);
  return found->second;
}

Result<api::Trial> SqliteStore::stored(const api::Trial& like) const {
  const auto found = trials_.find(key_of(like.metadata));
  if (found == trials_.end()) return missing(Kind::kTrial, like.metadata.name);
  return *found->second;
}

template <class Object>
Result<Object> SqliteStore::create(const Object& object) {
  Object created = object;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stored(object).ok()) {
      return Error{ErrorCode::kAlreadyExists,
                   describe(kind_of(object), object.metadata.name) + " exists already"};
    }
    created.metadata.uid = random_uid();
    created.metadata.generation = 1;
    created.metadata.created_ms = clock_->now_ms();
    FETTLE_TRY(keep_for_good(created));
  }
  notify(kind_of(created), created.metadata, study_of(created));
  return created;
}

template <class Object, class Part>
Result<Object> SqliteStore::update(const Object& object, Part Object::*part) {
  Object changed;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    FETTLE_ASSIGN(const Object before, stored(object));
    FETTLE_TRY(check_version(kind_of(object), object.metadata, before.metadata));
    if (before.*part == object.*part) return before;
    changed = before;
    changed.*part = object.*part;
    if constexpr (std::is_same_v<Part, decltype(object.spec)>) ++changed.metadata.generation;
    FETTLE_TRY(keep(&before, changed));
  }
  notify(kind_of(changed), changed.metadata, study_of(changed));
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
  // Copies, because keep() changes the maps.
  const std::map<control::Key, api::Study> studies = studies_;
  const std::map<control::Key, api::TrialPtr> trials = trials_;
  for (const auto& [key, study] : studies) FETTLE_TRY(end_for(study));
  for (const auto& [key, trial] : trials) FETTLE_TRY(end_for(*trial));
  return ahead_ms;
}

// ---- A full disk -------------------------------------------------------------------------------

std::string SqliteStore::no_room() {
  const std::lock_guard<std::mutex> guard(mutex_);
  return no_room_;
}

void SqliteStore::check_room() {
  std::vector<control::Change> waiting;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    // A write like any other, of the value that is already there: kSchemaVersion.
    if (no_room_.empty() || !database_->run("PRAGMA user_version=1").ok()) return;
    no_room_.clear();
    for (const auto& [key, study] : studies_) waiting.push_back({Kind::kStudy, key, key.name});
    for (const auto& [key, trial] : trials_) {
      waiting.push_back({Kind::kTrial, key, trial->spec.study});
    }
  }
  if (!listener_) return;
  for (const control::Change& change : waiting) listener_(change);
}

// ---- Events and notices ------------------------------------------------------------------------

void SqliteStore::record_event(const control::Change& about, bool warning,
                               const std::string& reason, const std::string& message,
                               std::int64_t now_ms) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (mode_ == Mode::kReadOnly) return;
  (void)database_->run(
      "INSERT INTO events(at_ms, kind, namespace, name, study, warning, reason, message) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
      {now_ms, kind_name(about.kind), about.key.ns, about.key.name, about.study,
       std::int64_t{warning}, reason, message});
  if (++events_ < kDropEventsEvery) return;
  events_ = 0;
  (void)database_->run("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?",
                       {kMaxEvents});
}

Result<std::vector<StoredEvent>> SqliteStore::list_events(const control::Key& study,
                                                          std::int64_t limit) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<StoredEvent> events;
  const auto visit = [&](const Sqlite::Row& row) {
    const auto number = [&](std::size_t i) { return std::get<std::int64_t>(row[i]); };
    const auto text = [&](std::size_t i) { return std::get<std::string>(row[i]); };
    const Kind kind = text(1) == kind_name(Kind::kStudy) ? Kind::kStudy : Kind::kTrial;
    events.push_back({number(0), kind, text(2), number(3) != 0, text(4), text(5)});
  };
  FETTLE_TRY(
      database_->run("SELECT at_ms, kind, name, warning, reason, message FROM events "
                     "WHERE namespace = ? AND study = ? ORDER BY id DESC LIMIT ?",
                     {study.ns, study.name, limit}, visit));
  std::ranges::reverse(events);
  return events;
}

void SqliteStore::watch(std::function<void(const control::Change&)> listener) {
  const std::lock_guard<std::mutex> guard(mutex_);
  listener_ = std::move(listener);
}

// listener_ is set before the first write and never again, so it is read without the mutex.
void SqliteStore::notify(Kind kind, const api::Metadata& metadata, const std::string& study) {
  if (listener_) listener_({kind, key_of(metadata), study});
}

}  // namespace fettle::local
