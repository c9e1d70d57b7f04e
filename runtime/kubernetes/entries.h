// Studies and Trials as the caches keep them: read, or with the reason why they cannot be.
//
// An object that somebody edited by hand, or that a newer version wrote, must not stop the others.
// What only reports (a Study's status, a Trial's status.report) is left out where it cannot be
// read: it is derived again. The learning curve of a trial that is done is left out, too: it is
// most of what a cache would hold of thousands of trials, and nobody asks for it.
// Values; reading is pure and usable from any thread.
#pragma once

#include <memory>
#include <string>

#include "api/study.h"
#include "api/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

// Of an object that cannot be read.
struct Unreadable {
  std::string why;  // for people, shortened; "" = it can be read
  // Its conditions as they are, and whether they say so already.
  Json conditions;
  bool said = false;
};

struct StudyEntry {
  api::Metadata metadata;
  std::shared_ptr<const api::Study> study;  // null when it cannot be read
  Unreadable unreadable;
};

struct TrialEntry {
  api::Metadata metadata;
  api::TrialPtr trial;      // null when it cannot be read
  std::string study;        // spec.study, "" where there is none
  bool is_trimmed = false;  // the trial is done, and its learning curve is left out
  Unreadable unreadable;
};

// Errors: it has no name, so it is no object at all.
Result<StudyEntry> read_study_entry(const Json& object);
Result<TrialEntry> read_trial_entry(const Json& object);

// The condition that says so, in an object's list of conditions.
Json conditions_of_unreadable(const Unreadable& unreadable, std::int64_t now_ms);

}  // namespace fettle::kubernetes
