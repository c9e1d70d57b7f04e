// SqliteStore: control::Store on one SQLite file.
//
// Objects are rows of JSON text; all of them are also kept in memory as typed values, written
// through, so that listing 600 trials parses nothing. Invariants: memory never runs ahead of the
// file (a write is committed first); resourceVersion is one counter for the whole store and only
// grows; a write that changes nothing keeps its resourceVersion. Every write is one transaction in
// WAL mode with synchronous=NORMAL: an acknowledged write survives any death of the process.
// One writer at a time (StudyLock sees to it), any number of read-only ones, which look again
// whenever the file has changed.
// Thread-safe: one mutex; the listener is called after it is released, from the writing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/store.h"

struct sqlite3;

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

class SqliteStore final : public control::Store {
 public:
  enum class Mode { kReadWrite, kReadOnly };

  // Opens, and with kReadWrite makes, the file. kNotFound: read-only and there is none. kIo: cannot
  // be opened or written, is no database, is damaged, or was written by a newer version; each says
  // which file and what to do.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path, Mode mode);
  ~SqliteStore() override;

  Result<api::Study> get_study(const control::Key& key) override;
  Result<api::TrialPtr> get_trial(const control::Key& key) override;
  Result<std::vector<api::Study>> list_studies() override;
  Result<std::vector<api::TrialPtr>> list_trials(const control::Key& study) override;

  Result<api::Study> create_study(const api::Study& study) override;
  Result<api::Study> update_study_spec(const api::Study& study) override;
  Result<api::Study> update_study_status(const api::Study& study) override;
  Result<api::Trial> create_trial(const api::Trial& trial) override;
  Result<api::Trial> update_trial_spec(const api::Trial& trial) override;
  Result<api::Trial> update_trial_status(const api::Trial& trial) override;

  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override;
  void watch(std::function<void(const control::Change&)> listener) override;

  // The newest `limit` events about the Study and its trials, oldest first.
  Result<std::vector<StoredEvent>> list_events(const control::Key& study, std::int64_t limit);

 private:
  struct Database;
  explicit SqliteStore(std::unique_ptr<Database> database);

  Status refresh();
  Status load();
  template <class Object, class Change>
  Result<Object> update(const Object& wanted, Change change);
  Status put(control::Kind kind, const api::Metadata& metadata, const std::string& study,
             const std::string& json);
  void notify(control::Kind kind, const api::Metadata& metadata, const std::string& study);

  std::mutex mutex_;
  std::unique_ptr<Database> database_;
  std::int64_t version_ = 0;  // the highest resourceVersion given out
  std::map<control::Key, api::Study> studies_;
  std::map<control::Key, api::TrialPtr> trials_;
  // Per Study its trials by spec.index.
  std::map<control::Key, std::map<std::int64_t, api::TrialPtr>> by_study_;
  std::function<void(const control::Change&)> listener_;
};

}  // namespace fettle::local
