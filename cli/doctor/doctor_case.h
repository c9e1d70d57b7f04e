// What `fettle doctor FILE` judges: a trainer's configuration by itself, or the first trial
// of each Study in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/yaml/study_file.h"
#include "base/json.h"

namespace fettle::cli {

struct DoctorCase {
  std::string name;             // "digits, first trial: units=64"
  std::optional<Json> trainer;  // for fettle-trainer --dry-run: a trial file or a configuration;
                                // absent: the trials run a program of their own
  std::string directory;        // where the trainer starts; "" = here
  std::string backend;          // "auto": what the configuration asks for
  std::string cannot_run;       // what a local run refuses of the Study; "" = nothing
  std::int64_t workers = 1;
  std::int64_t checkpoints_kept = 0;  // of a trial, and one that is being written
  std::int64_t trials_at_once = 1;
};

struct DoctorCases {
  std::vector<DoctorCase> cases;
  std::vector<api::Diagnostic> diagnostics;  // what is wrong with the file; then no cases
};

DoctorCases read_doctor_cases(const std::string& file);

}  // namespace fettle::cli
