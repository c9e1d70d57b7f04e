#include "runtime/local/process/run_end.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

#include "api/fields/quantity.h"
#include "base/file.h"
#include "core/trial/endings.h"
#include "runtime/sentences.h"

namespace fettle::local {
namespace {

using runtime::add_sentence;

std::string mebibytes(std::int64_t bytes) {
  return std::to_string((bytes + (1 << 19)) >> 20) + " MiB";
}

std::string cannot_start(const RunEnd& end) {
  const std::string why = system_message(end.process.report.error);
  if (end.process.report.failure == GuardReport::kDirectory) {
    return "cannot start in the working directory " + end.command.directory + ": " + why +
           "; correct workingDir in the Study's template";
  }
  const std::string& program = end.command.arguments[0];
  const std::string cannot = "cannot execute " + program + ": ";
  switch (end.process.report.error) {
    case ENOENT:
      return "command not found: " + program +
             "; install it, or correct the container's command in the Study's template";
    case EACCES:
      return cannot + "permission denied; is it a program, and is it executable (chmod +x)?";
    case ENOEXEC:
      return cannot + "it is no program for this machine";
    case E2BIG:
      return cannot + "its arguments and environment are too long";
    default:
      return cannot + why;
  }
}

// Says why a program could not start: a temporary fault of the machine, not of the Study.
std::string no_room(const RunEnd& end) {
  const std::string text = "cannot start " + end.command.arguments[0] +
                           " now: " + system_message(end.process.report.error);
  switch (end.process.report.error) {
    case EAGAIN:
      return text + "; the limit on processes is reached (ulimit -u): lower budget.parallelism";
    case ENOMEM:
      return text + "; lower budget.parallelism";
    case EMFILE:
    case ENFILE:
      return text + "; the limit on open files is reached (ulimit -n): lower budget.parallelism";
    default:  // ETXTBSY, the last error that is_transient() (guard.cpp) lets through
      return text + "; the program is still being written";
  }
}

// Appends to `stopped`, which says that the run was stopped, the processes that outlived the grace
// period.
std::string with_grace_period(const RunEnd& end, std::string stopped) {
  if (end.process.killed_after_grace) {
    const std::string who =
        end.process.report.left_behind > 0
            ? std::to_string(end.process.report.left_behind) + " of its processes"
            : "it";
    stopped += "; " + who + " did not end within " +
               api::format_duration(double(end.command.grace_ms) / 1000) + " of SIGTERM and " +
               (end.process.report.left_behind > 1 ? "were" : "was") + " killed";
  }
  return stopped;
}

// Whether the kernel probably killed it: the kernel says so, or the trial held most of the memory.
bool was_killed_for_memory(const RunEnd& end, const core::Exit& exit) {
  if (exit.signal == SIGKILL) {
    return end.oom_kills > 0 || end.process.report.peak_memory > end.machine_memory / 2;
  }
  return exit.code == core::kKilledBySigkill && end.oom_kills > 0;
}

core::EndCondition condition_of(const RunEnd& end, const core::Exit& exit) {
  // A stop explains the end, whatever the memory was.
  switch (end.process.cause) {
    case StopCause::kAsked:
      return core::EndCondition::kStopAsked;
    case StopCause::kShutdown:
      return core::EndCondition::kRunnerInterrupted;
    case StopCause::kRunnerGone:
      return core::EndCondition::kRunnerDied;
    case StopCause::kNone:
      break;
  }
  if (end.process.report.over_memory != 0) return core::EndCondition::kOverMemoryLimit;
  return was_killed_for_memory(end, exit) ? core::EndCondition::kMachineOutOfMemory
                                          : core::EndCondition::kNone;
}

// Such an end counts against the trial, so that it is not retried for ever: the next run needs as
// much memory.
std::string memory_ran_out(const RunEnd& end, const core::Exit& exit) {
  const std::string machine = "this machine's " + mebibytes(end.machine_memory);
  const std::string peak = mebibytes(end.process.report.peak_memory);
  if (end.oom_kills == 0) {
    return "killed by SIGKILL while it held " + peak + " of " + machine +
           ": most likely by the kernel, because memory ran out";
  }
  const std::string what =
      exit.code ? "exit code 137: a process of it was killed" : "killed by SIGKILL";
  return what + " by the kernel, because memory ran out; it was last seen to hold " + peak +
         " of " + machine;
}

// The table's sentence, or a longer one if this machine knows more.
std::string sentence_of(const RunEnd& end, const core::Exit& exit, const core::JudgedExit& judged) {
  if (judged.outcome == api::Outcome::kSucceeded) {
    return end.has_metrics ? "" : "exit code 0, but it printed no metric";
  }
  if (judged.outcome == api::Outcome::kOutOfMemory) {
    if (exit.condition == core::EndCondition::kMachineOutOfMemory) return memory_ran_out(end, exit);
    return "used " + mebibytes(end.process.report.peak_memory) +
           " of memory, more than its limit of " + mebibytes(end.command.memory_limit) +
           " (resources.limits.memory)";
  }
  return end.process.cause == StopCause::kNone ? judged.reason
                                               : with_grace_period(end, judged.reason);
}

void by_end(const RunEnd& end, RunOutcome& out) {
  const int status = end.process.report.wait_status;
  core::Exit exit{.host = core::Host::kProcess,
                  .has_peers = end.command.workers.size() > 1,
                  .final_result = end.final_result};
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
    out.signal = *exit.signal;
  } else {
    exit.code = WEXITSTATUS(status);
    out.exit_code = *exit.code;
  }
  exit.condition = condition_of(end, exit);
  const core::JudgedExit judged = core::judge_exit(exit);
  out.outcome = judged.outcome;
  out.presumed = judged.presumed;
  out.message = sentence_of(end, exit, judged);
}

}  // namespace

RunOutcome explain(const RunEnd& end) {
  RunOutcome out;
  out.peak_memory = end.process.report.peak_memory;
  if (!end.process.reported) {
    const auto judged = core::judge_exit({.condition = core::EndCondition::kGuardKilled});
    out.outcome = judged.outcome;
    out.message = judged.reason;
  } else if (end.process.report.failure != GuardReport::kNone) {
    const bool for_now = end.process.report.failure == GuardReport::kNoRoom;
    const bool stopped = for_now && end.process.cause == StopCause::kAsked;
    const auto condition = stopped   ? core::EndCondition::kStopAsked
                           : for_now ? core::EndCondition::kCannotStartNow
                                     : core::EndCondition::kCannotStart;
    // After a stop it counts as stopped, but the message still says why it had not started.
    out.outcome = core::judge_exit({.condition = condition}).outcome;
    out.message = for_now ? no_room(end) : cannot_start(end);
    return out;
  } else {
    by_end(end, out);
    // Worker 0 stands for the trial; any other is named.
    if (end.process.report.rank > 0 && !out.message.empty()) {
      out.message =
          "rank " + std::to_string(end.process.report.rank) + " of its workers: " + out.message;
    }
  }
  // If true, with_grace_period() has counted these processes already.
  const bool said = end.process.killed_after_grace && out.outcome != api::Outcome::kSucceeded;
  if (end.process.report.left_behind > 0 && !said) {
    add_sentence(out.message, "it left " + std::to_string(end.process.report.left_behind) +
                                  " processes behind, which were killed");
  }
  if (!end.log_error.empty()) add_sentence(out.message, end.log_error);
  // The last lines may tell the cause of a bad end, or why there is no metric.
  const bool good =
      out.outcome == api::Outcome::kSucceeded || out.outcome == api::Outcome::kStopped;
  if ((!good || !end.has_metrics) && !end.last_lines.empty()) {
    out.message += "; its last output:\n" + end.last_lines;
  }
  return out;
}

}  // namespace fettle::local
