// What `fettle doctor` prints, as text and as JSON. Pure functions.
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
  std::optional<machine::Need> need;  // absent: nothing is known of it
  std::int64_t parameters = 0;
  std::optional<std::int64_t> samples_fitting;
  std::string device;
  std::int64_t device_memory = 0;
  machine::Verdict verdict;
};

// What a local run may use of this machine, and what others use of it now.
struct Shared {
  local::Room room;
  std::string directory;  // where Sessions on this machine claim it
  std::string problem;    // why it cannot be used; "" = it can
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
