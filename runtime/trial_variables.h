// The environment variables of the worker contract (docs/your-program.md): the same for a process
// on this machine and for a container, so that no program needs to parse the trial file.
//
// Runtimes add their own variables (the uid of the attempt, ranks and rendezvous). Values are plain
// text; a runtime that expands variables escapes them. Pure; usable from any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/trial/trial_file.h"
#include "base/result.h"

namespace fettle::runtime {

// Returns name and value of each variable, parameters last. `path` is where the program finds the
// trial file. kInvalid, in words: a value holds a NUL character.
Result<std::vector<std::pair<std::string, std::string>>> trial_variables(const api::TrialFile& file,
                                                                         const std::string& path);

}  // namespace fettle::runtime
