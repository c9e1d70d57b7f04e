// DoctorCase: a subject of `fettle doctor FILE`, a trainer's configuration or the first trial of a
// Study in the file.
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
  std::string directory;        // in which the trainer starts; "" = here
  std::string backend;          // of the configuration; may be "auto"
  std::string cannot_run;       // why a local run refuses the Study; "" = it does not
  std::int64_t workers = 1;
  std::int64_t checkpoints_kept = 0;  // of a trial, and one that is being written
  std::int64_t trials_at_once = 1;
};

struct DoctorCases {
  std::vector<DoctorCase> cases;
  std::vector<api::Diagnostic> diagnostics;  // errors in the file; then no cases
};

DoctorCases read_doctor_cases(const std::string& file);

}  // namespace fettle::cli
