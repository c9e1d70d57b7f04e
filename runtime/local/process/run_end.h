// Translates the system's report of a run's end into an Outcome and a sentence for people, which
// names the cause and, if there is one, the way out. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/local/process/supervised_process.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

struct RunEnd {
  SupervisorCommand command;
  ProcessEnd process;
  bool has_metrics = false;
  bool final_result = false;   // reported as final by the program
  std::int64_t oom_kills = 0;  // processes that the kernel killed for memory as it ended
  std::int64_t machine_memory = 0;
  std::string last_lines;  // of its output
  std::string log_error;
};

// Fills in outcome, message, exit_code, signal and peak_memory.
RunOutcome explain(const RunEnd& end);

}  // namespace fettle::local
