// SqliteStore: control::Store on one SQLite file.
//
// Objects are rows of JSON text; all of them are also kept in memory as typed values, written
// through, so that listing 600 trials parses nothing. Invariants: memory never runs ahead of the
// file (a write is committed first); resourceVersion is one counter for the whole store and only
// grows; a write that changes nothing keeps its resourceVersion. Every write is one transaction in
// WAL mode: an acknowledged write survives any death of the process. Only a create is synced to the
// disk, with all before it: a loss of power may roll back later writes of status and spec, but
// never brings a name back under another uid, under which checkpoints would be mistaken. Without a
// write-ahead log (network_disk.h) every write is synced. Objects that could not be read back are
// refused (kInvalid). Objects of other versions are read leniently: fields that this one does not
// know decide nothing and stay as they are (stored_json.h), and values that another version
// accepted are not checked again. There is one writer at a time (StudyLock sees to it) and any
// number of readers, which read again whenever the file has changed. Thread-safe: one mutex; the
// listener is called after it is released, from the writing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "core/control/clock.h"
#include "core/control/store.h"

namespace fettle::local {

class Sqlite;

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

  // Opens the file, and makes it with kReadWrite. kNotFound: read-only and the file does not exist.
  // kIo: it cannot be opened or written, is no database, is damaged, or was written by a newer
  // version; each message says which file and what to do. `clock` gives the times of creation.
  static Result<std::unique_ptr<SqliteStore>> open(
      const std::string& path, Mode mode,
      std::shared_ptr<control::Clock> clock = std::make_shared<control::SystemClock>());
  ~SqliteStore() override;

  // Faults of the store and parts that cannot be read, one sentence each, for people.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Sets times that lie in the future back to now (future_times.h). Returns how many milliseconds
  // the latest was ahead, 0 if none was. Before watch().
  Result<std::int64_t> clamp_future_times();

  Result<api::Study> get_study(const control::Key& key) override;
  Result<api::TrialPtr> get_trial(const control::Key& key) override;
  Result<std::vector<api::Study>> list_studies() override;
  Result<std::vector<api::TrialPtr>> list_trials(const control::Key& study) override;

  // Reads another Study's store in the same directory.
  Result<StudyAndTrials> read_other(const control::Key& study) override;

  Result<api::Study> create_study(const api::Study& study) override;
  Result<api::Study> update_study_spec(const api::Study& study) override;
  Result<api::Study> update_study_status(const api::Study& study) override;
  Result<api::Trial> create_trial(const api::Trial& trial) override;
  Result<api::Trial> update_trial_spec(const api::Trial& trial) override;
  Result<api::Trial> update_trial_status(const api::Trial& trial) override;

  // "", or a sentence about a full disk: until there is room each write fails with kUnavailable and
  // changes nothing.
  std::string no_room();
  // Tries whether there is room again. If so, calls the listener for all objects, so that delayed
  // work is done now.
  void check_room();

  // Events are for people: an event that cannot be written is dropped. The newest kMaxEvents are
  // kept.
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override;
  void watch(std::function<void(const control::Change&)> listener) override;

  static constexpr std::int64_t kMaxEvents = 20'000;
  // The newest `limit` events about the Study and its trials, oldest first.
  Result<std::vector<StoredEvent>> list_events(const control::Key& study, std::int64_t limit);

 private:
  SqliteStore(std::unique_ptr<Sqlite> database, Mode mode, std::string path,
              std::shared_ptr<control::Clock> clock);

  Status choose_journal();
  Status make_schema();
  Status load();
  Status load_row(control::Kind kind, const std::string& json);
  void note_unknown();
  void note_frozen();
  Status refresh();
  Status put(control::Kind kind, const api::Metadata& metadata, const std::string& study,
             const std::string& json);
  // `before`: the object until now; nullptr: it is new.
  Status keep(const api::Study* before, api::Study& study);
  Status keep(const api::Trial* before, api::Trial& trial);
  template <class Object>
  Status keep_for_good(Object& created);
  template <class Object>
  Status write(const Object* before, const Object& after);
  // The object as it is stored; kNotFound.
  Result<api::Study> stored(const api::Study& like) const;
  Result<api::Trial> stored(const api::Trial& like) const;
  template <class Object>
  Result<Object> create(const Object& object);
  // Replaces one part, spec or status, of the object as it was read; kNotFound, kConflict.
  template <class Object, class Part>
  Result<Object> update(const Object& object, Part Object::*part);
  void notify(control::Kind kind, const api::Metadata& metadata, const std::string& study);

  std::mutex mutex_;
  const std::unique_ptr<Sqlite> database_;
  const Mode mode_;
  const std::string path_;
  const std::shared_ptr<control::Clock> clock_;
  bool has_log_ = true;  // a write-ahead log
  std::vector<std::string> warnings_;
  std::int64_t version_ = 0;       // the highest resourceVersion given out
  std::int64_t data_version_ = 0;  // SQLite's: changes when another process has written
  std::string no_room_;
  std::int64_t events_ = 0;  // recorded since the oldest were last dropped
  std::map<control::Key, api::Study> studies_;
  std::map<control::Key, api::TrialPtr> trials_;
  std::map<control::Key, std::map<std::int64_t, api::TrialPtr>> by_study_;  // by spec.index
  // Documents with fields that are unknown here, as they are stored.
  std::map<std::pair<control::Kind, control::Key>, Json> foreign_;
  std::function<void(const control::Change&)> listener_;
};

}  // namespace fettle::local
