// The command line, environment and working directory of a trial's process; and the check, before
// anything starts, for requests that a local run cannot meet.
//
// A template's container is expanded exactly as Kubernetes does it (expand.h): values are data and
// never pass through a shell. Pure, but for check_study, which asks whether this machine has a GPU
// and the variables that spec.trial.passEnvironment names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "api/trial/trial_file.h"
#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

struct RunCommand {
  api::TrialFile file;                 // the file for FETTLE_TRIAL
  std::vector<std::string> arguments;  // arguments[0] is looked up in PATH
  // Added to the inherited variables (process/environment.h).
  Variables environment;
  std::string directory;          // the container's workingDir
  std::int64_t memory_limit = 0;  // bytes, as tree_memory counts them; 0 = none
};

// kInvalid, in words: the Study requests something that a local run cannot do. Call before the
// first trial.
Status check_study(const api::Study& study);

// The command of run `run`. `trainer` is the path of the built-in trainer.
Result<RunCommand> make_command(const api::Study& study, const api::Trial& trial, std::int64_t run,
                                const Layout& layout, const std::string& trainer);

// Tells this run apart from runs of equally named trials: FETTLE_POD_UID.
std::string pod_uid_of(const api::Trial& trial, std::int64_t run);

// Cores that one worker asks for: training.threads, or the container's cpu request, else its limit,
// else 1; at least 0.001.
double cores_per_worker(const api::Study& study);

// Bytes that one worker asks for: the container's memory request, else its limit; 0 = neither is
// set.
std::int64_t memory_per_worker(const api::Study& study);

}  // namespace fettle::local
