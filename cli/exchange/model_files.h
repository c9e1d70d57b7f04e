// The files of a trial's model: how they are called, and a copy of a folder of checkpoints.
#pragma once

#include <string>

#include "base/result.h"

namespace fettle::cli {

// The path of `format` of `trial` if none is named: "digits-3.safetensors".
std::string model_path(const std::string& trial, const std::string& format);

// Copies the folder with everything in it to `to`, which appears when it is whole; links stay
// links. `force`: replaces the folder `to`. Errors: `from` is missing or empty; `to` exists; no
// room.
Status copy_checkpoints(const std::string& from, const std::string& to, bool force);

}  // namespace fettle::cli
