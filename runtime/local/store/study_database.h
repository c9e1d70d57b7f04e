// StudyDatabase: the SQLite file of one Study's store: its schema, its journal and every statement.
//
// An object is a row with its JSON text, which nothing here parses. Every write is one transaction
// in WAL mode: an acknowledged write survives any death of the process. Without a write-ahead log
// (network_disk.h) every write is synced to the disk as well. Not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/control/store.h"
#include "runtime/local/store/sqlite.h"

namespace fettle::local {

// An event as `fettle status --events` shows it.
struct StoredEvent {
  std::int64_t at_ms = 0;  // Unix milliseconds
  control::Kind kind = control::Kind::kStudy;
  std::string name;
  bool warning = false;
  std::string reason;
  std::string message;
};

class StudyDatabase {
 public:
  // Opens the file, and makes it if `writable`. Errors as SqliteStore::open().
  static Result<StudyDatabase> open(const std::string& path, bool writable);

  const std::string& path() const { return path_; }
  // "", or a sentence for people: the file has no write-ahead log.
  const std::string& journal_warning() const { return journal_warning_; }
  // "", or a sentence for people: the file is read without its write-ahead log.
  std::string frozen_warning() const;

  // Whether the objects have not been read yet or, for a reader, another process has written since.
  Result<bool> has_changed();
  // The objects in the file: their number, and the highest version that was written.
  struct Extent {
    std::int64_t count = 0;
    std::int64_t version = 0;
  };
  Result<Extent> extent();
  // Calls `visit` for each object that was written after version `after`, until it fails.
  Status read_objects(
      std::int64_t after,
      const std::function<Status(control::Kind kind, const std::string& json)>& visit);
  // Inserts or replaces the object.
  Status put_object(const control::Change& about, std::int64_t version, const std::string& json);
  // Whether a write is synced to the disk, with all writes before it, even with a write-ahead log.
  Status set_durable(bool durable) { return sqlite_->set_durable(durable || !has_log_); }

  // "", or a sentence about the full disk that a write has met.
  const std::string& no_room() const { return no_room_; }
  // Tries whether a full disk has room again.
  bool regains_room();

  static constexpr std::int64_t kMaxEvents = 20'000;
  // An event that cannot be written is dropped. The newest kMaxEvents are kept.
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms);
  // The newest `limit` events about the Study and its trials, oldest first.
  Result<std::vector<StoredEvent>> list_events(const control::Key& study, std::int64_t limit);

 private:
  StudyDatabase(std::unique_ptr<Sqlite> sqlite, std::string path, bool writable)
      : sqlite_(std::move(sqlite)), path_(std::move(path)), writable_(writable) {}
  Status choose_journal();
  Status make_schema();

  std::unique_ptr<Sqlite> sqlite_;
  std::string path_;
  bool writable_;
  bool has_log_ = true;  // a write-ahead log
  std::string journal_warning_;
  std::optional<std::int64_t> data_version_;  // SQLite's, when the objects were last read
  std::string no_room_;
  std::int64_t events_ = 0;  // recorded since the oldest were last dropped
};

}  // namespace fettle::local
