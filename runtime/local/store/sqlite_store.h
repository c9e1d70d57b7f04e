// SqliteStore: control::Store on one SQLite file.
//
// Objects are rows of JSON text in the file (study_database.h); all of them are also kept in memory
// as typed values (stored_objects.h), written through, so that listing 600 trials parses nothing.
// Invariants: memory never runs ahead of the file (a write is committed first); resourceVersion is
// one counter for the whole store and only grows; a write that changes nothing keeps its
// resourceVersion. An acknowledged write survives any death of the process. Only a create is synced
// to the disk, with all before it: a loss of power may roll back later writes of status and spec,
// but never brings a name back under another uid, under which checkpoints would be mistaken.
// Objects that could not be read back are refused (kInvalid). There is one writer at a time
// (StudyLock sees to it) and any number of readers, which read what was written since whenever the
// file has changed.
// Thread-safe: one mutex; the listener is called after it is released, from the writing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/control/clock.h"
#include "core/control/store.h"
#include "runtime/local/store/stored_objects.h"
#include "runtime/local/store/study_database.h"

namespace fettle::local {

class SqliteStore final : public control::Store {
 public:
  enum class Mode { kReadWrite, kReadOnly };

  // Opens the file, and makes it with kReadWrite. kNotFound: read-only and the file does not exist.
  // kIo: it cannot be opened or written, is no database, is damaged, or was written by a newer
  // version; each message says which file and what to do. `clock` gives the times of creation.
  static Result<std::unique_ptr<SqliteStore>> open(
      const std::string& path, Mode mode,
      std::shared_ptr<control::Clock> clock = std::make_shared<control::SystemClock>());

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
  std::string no_room() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return database_.no_room();
  }
  // Tries whether there is room again. If so, calls the listener for all objects, so that delayed
  // work is done now.
  void check_room();

  // Events are for people: an event that cannot be written is dropped.
  void record_event(const control::Change& about, bool warning, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) override;
  void watch(std::function<void(const control::Change&)> listener) override;

  // The newest `limit` events about the Study and its trials, oldest first.
  Result<std::vector<StoredEvent>> list_events(const control::Key& study, std::int64_t limit);

 private:
  SqliteStore(StudyDatabase database, std::shared_ptr<control::Clock> clock)
      : database_(std::move(database)), clock_(std::move(clock)) {}

  // Reads objects that memory does not have as they are in the file.
  Status refresh();
  // Writes the object under the next resourceVersion, then keeps it in memory. `before`: the object
  // until now; nullptr: it is new.
  template <class Object>
  Status keep(const Object* before, Object& object);
  template <class Object>
  Result<Object> create(const Object& object);
  // Replaces one part, spec or status, of the object as it was read; kNotFound, kConflict.
  template <class Object, class Part>
  Result<Object> update(const Object& object, Part Object::*part);
  void notify(const control::Change& change);

  std::mutex mutex_;
  StudyDatabase database_;
  StoredObjects objects_;
  const std::shared_ptr<control::Clock> clock_;
  std::vector<std::string> warnings_;
  std::function<void(const control::Change&)> listener_;
};

}  // namespace fettle::local
