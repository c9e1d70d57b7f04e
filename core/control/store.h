// Store: keeps Studies and Trials. On a cluster the Kubernetes API server, locally SQLite, in tests
// a map.
//
// Semantics are the API server's. Every write carries the resourceVersion it was planned from and
// fails with kConflict when the object has changed since; create of an existing name fails with
// kAlreadyExists. spec and status are written separately; a status write leaves spec alone and the
// other way round. Writes return the object as stored. An acknowledged write survives a crash.
// Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/result.h"

namespace fettle::control {

// Namespace and name.
struct Key {
  std::string ns;
  std::string name;
  auto operator<=>(const Key&) const = default;
};

enum class Kind { kStudy, kTrial };

// The object has changed; read it again. A resync makes up for notices that were missed.
struct Change {
  Kind kind = Kind::kStudy;
  Key key;
  std::string study;  // the Study it belongs to
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<api::Study> get_study(const Key& key) = 0;
  virtual Result<api::TrialPtr> get_trial(const Key& key) = 0;
  virtual Result<std::vector<api::Study>> list_studies() = 0;
  // The trials that the Study owns (core/names.h), sorted by spec.index. kUnavailable: one of them
  // cannot be read now, and decisions without it would be wrong.
  virtual Result<std::vector<api::TrialPtr>> list_trials(const Key& study) = 0;
  // How many trials are left of a deleted Study that had this Study's name. Stores that delete a
  // Study together with its trials need not override it.
  virtual std::int64_t count_earlier_trials(const api::Study& study) {
    (void)study;
    return 0;
  }

  // A Study and its trials, for the warm start of another one. kNotFound.
  struct StudyAndTrials {
    api::Study study;
    std::vector<api::TrialPtr> trials;
  };
  virtual Result<StudyAndTrials> read_other(const Key& study) {
    FETTLE_ASSIGN(api::Study found, get_study(study));
    FETTLE_ASSIGN(std::vector<api::TrialPtr> trials, list_trials(study));
    return StudyAndTrials{std::move(found), std::move(trials)};
  }

  // kConflict unless `trial` is the version that is stored now, not only the version in a cache.
  // Stores whose reads are never stale need not override it.
  virtual Status confirm(const api::Trial& trial) {
    FETTLE_ASSIGN(const api::TrialPtr stored, get_trial({trial.metadata.ns, trial.metadata.name}));
    return same_version(*stored, trial);
  }

  virtual Result<api::Study> create_study(const api::Study& study) = 0;
  virtual Result<api::Study> update_study_spec(const api::Study& study) = 0;
  virtual Result<api::Study> update_study_status(const api::Study& study) = 0;
  // Deletes the Study if it is still as it was seen, and in the background its trials. A local
  // store does nothing: its Studies are files that belong to the user.
  virtual Status delete_study(const api::Study& study) {
    (void)study;
    return success();
  }
  virtual Result<api::Trial> create_trial(const api::Trial& trial) = 0;
  virtual Result<api::Trial> update_trial_spec(const api::Trial& trial) = 0;
  virtual Result<api::Trial> update_trial_status(const api::Trial& trial) = 0;

  // Keeps an event for people to read (kubectl describe; fettle status --events).
  virtual void record_event(const Change& about, bool warning, const std::string& reason,
                            const std::string& message, std::int64_t now_ms) = 0;

  // `listener` is called after every write, from the writing thread; it must return quickly and not
  // call the store. One listener; set before the first write.
  virtual void watch(std::function<void(const Change&)> listener) = 0;

 protected:
  static Status same_version(const api::Trial& stored, const api::Trial& seen) {
    if (stored.metadata.resource_version == seen.metadata.resource_version) return success();
    return Error{ErrorCode::kConflict, seen.metadata.name + " has changed since it was read"};
  }
};

}  // namespace fettle::control
