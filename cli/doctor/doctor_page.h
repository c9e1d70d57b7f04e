// The output of `fettle doctor`, as text and as JSON. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/doctor/doctor_case.h"
#include "machine/bounds.h"
#include "machine/machine.h"
#include "runtime/local/run/room.h"

namespace fettle::cli {

// The verdict on a case.
struct Diagnosis {
  DoctorCase about;
  std::optional<machine::Need> need;  // absent: not known
  std::int64_t parameters = 0;
  std::optional<std::int64_t> samples_fitting;
  std::string device;
  std::int64_t device_memory = 0;
  machine::Verdict verdict;
};

// The part of this machine that a local run may use, and the part that others use now.
struct Shared {
  local::Room room;
  std::string directory;  // of the claims of Sessions on this machine
  std::string problem;    // why the directory cannot be used; "" = it can
  std::vector<local::Claim> claims;
};

struct Examination {
  machine::Machine machine;
  Shared shared;
  Json backends;  // of fettle-trainer: {"reference": "ready", ...}; null: it did not answer
  std::string trainer_missing;
  std::string processes;  // "", or why the processes of trials cannot be watched
  std::vector<Diagnosis> diagnoses;
};

std::string doctor_text(const Examination& examination);
Json doctor_json(const Examination& examination);

}  // namespace fettle::cli
