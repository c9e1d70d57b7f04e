// Studies and Trials as the caches keep them: read, or with the reason why they cannot be.
//
// What the API server stores is read leniently: a field that this version does not know was
// written, or filled in as a default, by a newer one, and says nothing about the rest. An object
// that cannot be read all the same must not stop the others, nor end: it gets the condition
// Readable, False, until it can be read again. What only reports (a Study's status, a Trial's
// status.report) is left out where it cannot be read: it is derived again. The learning curve of a
// trial that is done is left out, too: it is most of what a cache would hold of thousands of
// trials, and nobody asks for it.
// Values; reading is pure and usable from any thread.
#pragma once

#include <memory>
#include <string>

#include "api/study.h"
#include "api/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

// Whether an object can be read, and whether its conditions say the same.
struct Readability {
  std::string why;    // not, for people, shortened; "" = it can be read
  bool said = false;  // by the condition Readable, or by there being none
  Json conditions;    // as they are, where something is left to say
};

struct StudyEntry {
  api::Metadata metadata;
  std::shared_ptr<const api::Study> study;  // null when it cannot be read
  Readability readability;
};

struct TrialEntry {
  api::Metadata metadata;
  api::TrialPtr trial;      // null when it cannot be read
  std::string study;        // spec.study, "" where there is none
  std::string study_uid;    // of the Study that owns it, by its owner references; "" = none
  bool is_trimmed = false;  // the trial is done, and its learning curve is left out
  Readability readability;
};

// Errors: it has no name, so it is no object at all. The label with the uid of a trial's Study
// (core/names.h) is what the owner references say, whatever is written on the object.
Result<StudyEntry> read_study_entry(const Json& object);
Result<TrialEntry> read_trial_entry(const Json& object);

// The object's conditions with what there is to say.
Json conditions_with(const Readability& readability, std::int64_t now_ms);

}  // namespace fettle::kubernetes
