// Reads the API server's Studies and Trials for the commands. Pure functions.
#pragma once

#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::cli {

// kInvalid names the object: another version wrote it, or a person.
Result<api::Study> read_study_object(const Json& object);
Result<api::Trial> read_trial_object(const Json& object);

void sort_by_index(std::vector<api::TrialPtr>& trials);

}  // namespace fettle::cli
