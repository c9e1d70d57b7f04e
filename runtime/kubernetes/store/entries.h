// Cache entries of Studies and Trials: the parsed object, or the reason why it cannot be read.
//
// Stored objects are read leniently: an unknown field was written, or defaulted, by a newer version
// and does not invalidate the rest. An object that still cannot be read must neither block others
// nor be ended: it gets the condition Readable=False until it can be read. Derived parts (a Study's
// status, a Trial's status.report) are dropped if unreadable, since they are derived again. The
// learning curve of a finished trial is dropped as well: nothing reads it, and it would be most of
// the cache's memory for thousands of trials.
// Values; parsing is pure and usable from any thread.
#pragma once

#include <memory>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

// Whether an object can be read, and whether its condition Readable agrees.
struct Readability {
  std::string why;        // the error, shortened; "" = it can be read
  bool reported = false;  // the condition Readable agrees
  Json conditions;        // as stored, unless `reported`
};

struct StudyEntry {
  api::Metadata metadata;
  std::shared_ptr<const api::Study> study;  // null if it cannot be read
  Readability readability;
};

struct TrialEntry {
  api::Metadata metadata;
  api::TrialPtr trial;      // null if it cannot be read
  std::string study;        // spec.study, or ""
  std::string study_uid;    // uid of the Study that owns it, by owner reference; "" = none
  bool is_trimmed = false;  // the trial is finished and its learning curve was dropped
  Readability readability;
};

// Fails only for an object without a name. The label with the uid of a trial's Study (core/names.h)
// is set from the owner references, whatever the object's own label says.
Result<StudyEntry> read_study_entry(const Json& object);
Result<TrialEntry> read_trial_entry(const Json& object);

// The object's conditions, with Readable added or removed. Requires !readability.reported.
Json conditions_with(const Readability& readability, std::int64_t now_ms);

}  // namespace fettle::kubernetes
