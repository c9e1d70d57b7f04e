// Reconciles the Study of a file with the one in the store, before anything runs.
#pragma once

#include <string>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"
#include "core/control/store.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/store/study_lock.h"

namespace fettle::cli {

struct Adopted {
  api::Study study;
  // Fields that the file leaves out and that keep the value with which the study began, since the
  // default was another one then: "spec.resource.min: 1".
  std::vector<std::string> kept;
};

// Creates the Study, or resumes it with the changes that a study with trials allows, and returns it
// as stored from now on. `written` is the document of `wanted`: a field that it leaves out changes
// nothing. kInvalid names every other change, with both values and a remedy.
Result<Adopted> adopt_study(control::Store& store, const api::Study& wanted, const Json& written);

// Moves the study's files to <root>/.old/<study>-<n> and returns that path; "" if there are no
// files. Takes the study's lock meanwhile, so nothing can be running. Deletes nothing, except the
// oldest run directories of studies moved aside earlier while they exceed kMostRunBytes
// (runtime/local/store/pruning.h).
Result<std::string> move_aside(const local::Layout& layout, const local::StudyLockOptions& lock);

}  // namespace fettle::cli
