// The request that defines a run, and its preparation: the files that the run needs before it
// begins, and the supervisor's command that starts it.
//
// Invariant: a directory that is prepared shows no trace of an earlier run, above all no log, which
// means that a run has begun. Usable from any thread, for one run at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/run/gpus.h"
#include "runtime/local/run/run_command.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

struct RunRequest {
  api::Study study;
  api::Trial trial;
  std::int64_t run = 0;
  RunCommand command;

  // Wanted at the start; at least 1.
  std::int64_t workers() const { return command.file.workers; }
};

// kInvalid: the run can never start as the template is written.
Result<RunRequest> request_run(const api::Study& study, const api::Trial& trial, std::int64_t run,
                               const Layout& layout, const std::string& trainer);

// Writes the files of the run and returns the command that starts it, without a claim file.
// Trials start in `directory`, unless the container's workingDir is absolute. `gpus`: of all
// workers that begin. `by_pci`: as VisibleGpus::by_pci.
Result<SupervisorCommand> prepare_run(const RunRequest& request, const Layout& layout,
                                      const std::string& directory,
                                      const std::vector<GpuName>& gpus, bool by_pci);

// Writes the file from which the guard learns the GPUs of workers that start later, `each` for one
// worker (guard.h).
Status write_gpus(const std::string& run_directory, const std::vector<GpuName>& gpus,
                  std::int64_t each);

}  // namespace fettle::local
