// How a run ended, in words: from what the system said to an Outcome and a sentence that names the
// cause and, where there is one, the way out. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/local/guard.h"
#include "runtime/local/supervisor_wire.h"

namespace fettle::local {

// Why somebody wanted the run to end before it did so by itself.
enum class StopCause { kNone, kAsked, kShutdown, kRunnerGone, kMemory };

struct RunEnd {
  bool reported = true;  // false: the guard was killed before it could report
  GuardReport report;
  StopCause cause = StopCause::kNone;
  bool killed_after_grace = false;  // it did not end on SIGTERM
  bool has_metrics = false;
  bool final_result = false;  // it said so
  bool has_others = false;    // the trial has several workers
  std::int64_t grace_ms = 0;
  std::int64_t memory_limit = 0;  // bytes; 0 = none
  std::int64_t peak_memory = 0;   // seen at once, mapped files excepted
  std::int64_t oom_kills = 0;     // processes that the kernel killed for want of memory as it ended
  std::int64_t machine_memory = 0;
  std::string command;  // arguments[0]
  std::string directory;
  std::string last_lines;  // of its output
  std::string log_error;
};

// Fills in outcome, message, exit_code, signal and peak_memory.
RunOutcome explain(const RunEnd& end);

}  // namespace fettle::local
