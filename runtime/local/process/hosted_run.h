// HostedRun: one run as the supervisor sees it, from its beginning to outcome.json: its output, and
// how it ended. Its process belongs to a RunHost.
//
// Owned and driven by the supervisor's poll loop; not synchronised; nothing here blocks. Times are
// Unix milliseconds, handed in.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/local/process/supervised_process.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/process/trial_output.h"

namespace fettle::local {

class HostedRun {
 public:
  // The run begins: its log is opened. `command`: kStart or kAssign.
  HostedRun(const SupervisorCommand& command, std::int64_t now_ms);

  RunKey key() const { return {command_.trial, command_.run}; }
  TrialOutput& output() { return output_; }
  const TrialOutput& output() const { return output_; }
  std::int64_t started_ms() const { return started_ms_; }

  // Completes the log and writes outcome.json: the run ended as a process that ends so. `remark`:
  // a further sentence for people; may be "". Once.
  RunOutcome finish(const ProcessEnd& process, const std::string& remark, std::int64_t now_ms);
  // The same for an end that its process does not explain.
  RunOutcome end_as(api::Outcome outcome, const std::string& reason, std::int64_t now_ms);

 private:
  RunOutcome record(RunOutcome outcome, const std::string& remark, std::int64_t now_ms);

  const SupervisorCommand command_;
  const std::int64_t started_ms_;
  TrialOutput output_;
};

// Samples the kernel's kills for lack of memory, which are shared by all runs: call it while runs
// run, at least every few seconds.
void sample_oom_kills(std::int64_t now_ms);

}  // namespace fettle::local
