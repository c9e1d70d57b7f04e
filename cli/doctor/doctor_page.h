// The output of `fettle doctor`, as text and as JSON. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/machine/machine.h"
#include "runtime/local/run/room.h"

namespace fettle::cli {

// The part of this machine that a local run may use, and the part that others use now.
struct Shared {
  local::Room room;
  std::string directory;  // of the claims of Sessions on this machine
  std::string problem;    // why the directory cannot be used; "" = it can
  std::vector<local::Claim> claims;
  std::vector<std::string> workers;  // "digits: 2 warm, ...": of the studies in this directory
};

struct Examination {
  machine::Machine machine;
  Shared shared;
  Json backends;  // of fettle-trainer: {"reference": "ready", ...}; null: it did not answer
  std::string trainer_missing;
  std::vector<std::string> warnings;  // each with the way out
};

std::string doctor_text(const Examination& examination);
Json doctor_json(const Examination& examination);

}  // namespace fettle::cli
