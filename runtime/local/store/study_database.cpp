#include "runtime/local/store/study_database.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <variant>

#include "runtime/local/store/network_disk.h"

namespace fettle::local {
namespace {

using control::Kind;

// Stored in the file's user_version; a file with a higher version is refused.
constexpr std::int64_t kSchemaVersion = 1;
constexpr std::int64_t kDropEventsEvery = 1000;

const char* kind_name(Kind kind) { return kind == Kind::kStudy ? "Study" : "Trial"; }

Kind kind_named(const std::string& name) {
  return name == kind_name(Kind::kStudy) ? Kind::kStudy : Kind::kTrial;
}

}  // namespace

// ---- Opening -----------------------------------------------------------------------------------

Result<StudyDatabase> StudyDatabase::open(const std::string& path, bool writable) {
  FETTLE_ASSIGN(auto sqlite, Sqlite::open(path, writable));
  StudyDatabase opened(std::move(sqlite), path, writable);
  FETTLE_ASSIGN(const std::int64_t schema, opened.sqlite_->number("PRAGMA user_version"));
  if (schema > kSchemaVersion) {
    return io_error(path + " was written by a newer fettle (schema " + std::to_string(schema) +
                    ", this one knows " + std::to_string(kSchemaVersion) +
                    "); use that one, or another directory");
  }
  if (writable) {
    FETTLE_TRY(opened.choose_journal());
    if (schema < kSchemaVersion) FETTLE_TRY(opened.make_schema());
    // Fail now rather than at the first write.
    FETTLE_TRY(opened.sqlite_->run("BEGIN IMMEDIATE"));
    FETTLE_TRY(opened.sqlite_->run("ROLLBACK"));
  }
  return opened;
}

// A write-ahead log needs memory that all readers share, which a network file system lacks. Other
// file systems may refuse it as well; SQLite then says so.
Status StudyDatabase::choose_journal() {
  const std::string network = network_file_system(path_);
  has_log_ = network.empty();
  if (has_log_) {
    FETTLE_ASSIGN(const std::string mode, sqlite_->text("PRAGMA journal_mode=WAL"));
    has_log_ = mode == "wal";
    if (!has_log_) {
      journal_warning_ = "SQLite can have no write-ahead log for " + path_ + " (it answers \"" +
                         mode + "\"): every write waits for the disk; better use another: -C DIR";
    }
  } else {
    FETTLE_TRY(sqlite_->run("PRAGMA journal_mode=DELETE"));
    journal_warning_ = network_warning(path_, network);
  }
  return set_durable(false);
}

Status StudyDatabase::make_schema() {
  FETTLE_TRY(sqlite_->run("BEGIN IMMEDIATE"));
  FETTLE_TRY(sqlite_->run(
      "CREATE TABLE IF NOT EXISTS objects(kind TEXT NOT NULL, namespace TEXT NOT NULL, "
      "name TEXT NOT NULL, study TEXT NOT NULL, resource_version INTEGER NOT NULL, "
      "json TEXT NOT NULL, PRIMARY KEY(kind, namespace, name)) WITHOUT ROWID"));
  FETTLE_TRY(sqlite_->run(
      "CREATE TABLE IF NOT EXISTS events(id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, "
      "kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, study TEXT NOT NULL, "
      "warning INTEGER NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL)"));
  FETTLE_TRY(sqlite_->run("PRAGMA user_version=1"));
  return sqlite_->run("COMMIT");
}

std::string StudyDatabase::frozen_warning() const {
  std::error_code code;
  const auto log = std::filesystem::file_size(path_ + "-wal", code);
  if (!sqlite_->is_frozen() || code || log == 0) return "";
  return path_ + "-wal holds the newest changes and cannot be read from here, since " +
         "its directory cannot be written: what is shown may be old";
}

// ---- Objects -----------------------------------------------------------------------------------

Result<bool> StudyDatabase::has_changed() {
  if (writable_ && data_version_) return false;
  FETTLE_ASSIGN(const std::int64_t now, sqlite_->number("PRAGMA data_version"));
  return now != data_version_;
}

Result<StudyDatabase::Extent> StudyDatabase::extent() {
  Extent extent;
  FETTLE_TRY(sqlite_->run("SELECT count(*), coalesce(max(resource_version), 0) FROM objects", {},
                          [&](const Sqlite::Row& row) {
                            extent.count = std::get<std::int64_t>(row[0]);
                            extent.version = std::get<std::int64_t>(row[1]);
                          }));
  return extent;
}

Status StudyDatabase::read_objects(
    std::int64_t after, const std::function<Status(Kind kind, const std::string& json)>& visit) {
  // Before the rows, so that a write meanwhile is not missed. Recorded only once all rows are read:
  // after a failure the next call reads again, and fails again.
  FETTLE_ASSIGN(const std::int64_t version, sqlite_->number("PRAGMA data_version"));
  FETTLE_ASSIGN(const std::int64_t schema, sqlite_->number("PRAGMA user_version"));
  if (schema == 0) {  // a runner is just creating it
    data_version_ = version;
    return success();
  }
  Status visited = success();
  const auto visit_row = [&](const Sqlite::Row& row) {
    const auto* kind = std::get_if<std::string>(&row[0]);
    const auto* json = std::get_if<std::string>(&row[1]);
    if (!visited.ok() || kind == nullptr || json == nullptr) return;
    visited = visit(kind_named(*kind), *json);
  };
  FETTLE_TRY(sqlite_->run("SELECT kind, json FROM objects WHERE resource_version > ?", {after},
                          visit_row));
  if (visited.ok()) {
    data_version_ = version;
    return success();
  }
  return io_error(path_ + " holds an object that cannot be read: " + visited.error().message +
                  "; if a newer fettle wrote it, use that one; else restore it from a copy, or "
                  "move it away to start the Study anew");
}

Status StudyDatabase::put_object(const control::Change& about, std::int64_t version,
                                 const std::string& json) {
  if (!writable_) return io_error(path_ + " is open for reading only");
  Status written = sqlite_->run(
      "INSERT OR REPLACE INTO objects VALUES(?, ?, ?, ?, ?, ?)",
      {kind_name(about.kind), about.key.ns, about.key.name, about.study, version, json});
  if (!written.ok() && sqlite_->is_full()) no_room_ = written.error().message;
  return written;
}

bool StudyDatabase::regains_room() {
  // A write like any other, of the value that is already there: kSchemaVersion.
  if (no_room_.empty() || !sqlite_->run("PRAGMA user_version=1").ok()) return false;
  no_room_.clear();
  return true;
}

// ---- Events ------------------------------------------------------------------------------------

void StudyDatabase::record_event(const control::Change& about, bool warning,
                                 const std::string& reason, const std::string& message,
                                 std::int64_t now_ms) {
  if (!writable_) return;
  (void)sqlite_->run(
      "INSERT INTO events(at_ms, kind, namespace, name, study, warning, reason, message) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
      {now_ms, kind_name(about.kind), about.key.ns, about.key.name, about.study,
       std::int64_t{warning}, reason, message});
  if (++events_ < kDropEventsEvery) return;
  events_ = 0;
  (void)sqlite_->run("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?",
                     {kMaxEvents});
}

Result<std::vector<StoredEvent>> StudyDatabase::list_events(const control::Key& study,
                                                            std::int64_t limit) {
  std::vector<StoredEvent> events;
  const auto visit = [&](const Sqlite::Row& row) {
    const auto number = [&](std::size_t i) { return std::get<std::int64_t>(row[i]); };
    const auto text = [&](std::size_t i) { return std::get<std::string>(row[i]); };
    events.push_back({number(0), kind_named(text(1)), text(2), number(3) != 0, text(4), text(5)});
  };
  FETTLE_TRY(
      sqlite_->run("SELECT at_ms, kind, name, warning, reason, message FROM events "
                   "WHERE namespace = ? AND study = ? ORDER BY id DESC LIMIT ?",
                   {study.ns, study.name, limit}, visit));
  std::ranges::reverse(events);
  return events;
}

}  // namespace fettle::local
