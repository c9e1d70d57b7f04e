// SupervisedRun: one run as the supervisor sees it, from fork to outcome.json: a process, and the
// output of the trial that it runs.
//
// Owned and driven by the supervisor's poll loop; not synchronised; nothing here blocks. Times are
// Unix milliseconds, handed in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/local/process/supervised_process.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/process/trial_output.h"

namespace fettle::local {

class SupervisedRun {
 public:
  // Starts the process. Never fails: a run that could not be started has ended, with an outcome or
  // for lack of room. For the arguments see SupervisedProcess.
  SupervisedRun(const SupervisorCommand& command,
                std::vector<std::vector<std::string>> environments, int lock_fd,
                std::int64_t open_files, std::int64_t now_ms);

  SupervisedProcess& process() { return process_; }
  TrialOutput& output() { return output_; }

  void read(std::int64_t now_ms);
  // Calls process().tick(); call when its wake_ms() has come.
  void tick(std::int64_t now_ms);

  // After the end of the process: the resource that this machine lacked for the program to begin;
  // "" = it began, or failed for another reason. If not "", finish() is not called and nothing is
  // left of the run.
  std::string no_room() const;
  // Completes the log and writes outcome.json. Once, after the end of the process.
  RunOutcome finish(std::int64_t now_ms);

 private:
  const SupervisorCommand command_;
  const std::int64_t started_ms_;
  TrialOutput output_;
  SupervisedProcess process_;
};

}  // namespace fettle::local
