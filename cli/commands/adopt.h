// Reconciles the Study of a file with the one in the store, before anything runs.
#pragma once

#include <string>
#include <vector>

#include "api/study.h"
#include "base/json.h"
#include "base/result.h"
#include "control/store.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/store/study_lock.h"

namespace fettle::cli {

struct Adopted {
  api::Study study;
  // Fields that the file leaves out and that keep the value the study began with, with that value:
  // the default was another one then. "spec.resource.min: 1".
  std::vector<std::string> kept;
};

// The Study as it is stored from now on: created, or resumed with the changes that a study with
// trials allows. `written` is the document that `wanted` was read from: a field that it leaves out
// changes nothing. kInvalid names every other change, with both values and the way out.
Result<Adopted> adopt_study(control::Store& store, const api::Study& wanted, const Json& written);

// Moves what is kept of the study to <root>/.old/<study>-<n> and returns that path; "" when there
// is nothing. Takes the study's lock meanwhile, so nothing can be running. Deletes nothing but the
// oldest run directories of what was moved aside earlier, where they are over kMostRunBytes
// (runtime/local/store/pruning.h).
Result<std::string> move_aside(const local::Layout& layout, const local::StudyLockOptions& lock);

}  // namespace fettle::cli
