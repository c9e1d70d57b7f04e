#include "runtime/local/process/run_end.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <cerrno>

#include "api/quantity.h"
#include "api/trainer_config.h"
#include "base/file.h"

namespace fettle::local {
namespace {

constexpr int kExitAfterSigterm = 128 + SIGTERM;  // the worker contract's "stopped gently"
constexpr int kExitAfterSigkill = 128 + SIGKILL;  // what a shell makes of its program's end

std::string mebibytes(std::int64_t bytes) {
  return std::to_string((bytes + (1 << 19)) >> 20) + " MiB";
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

std::string cannot_start(const RunEnd& end) {
  const std::string why = system_message(end.report.error);
  if (end.report.failure == GuardReport::kDirectory) {
    return "cannot start in the working directory " + end.directory + ": " + why +
           "; correct workingDir in the Study's template";
  }
  switch (end.report.error) {
    case ENOENT:
      return "command not found: " + end.command +
             "; install it, or correct the container's command in the Study's template";
    case EACCES:
      return "cannot execute " + end.command + ": permission denied; is it a program, and is it " +
             "executable (chmod +x)?";
    case ENOEXEC:
      return "cannot execute " + end.command + ": it is no program for this machine";
    case E2BIG:
      return "cannot execute " + end.command + ": its arguments and environment are too long";
    default:
      return "cannot execute " + end.command + ": " + why;
  }
}

// Temporary: a fault of the machine, not of the Study.
std::string no_room(const RunEnd& end) {
  const std::string text =
      "cannot start " + end.command + " now: " + system_message(end.report.error);
  switch (end.report.error) {
    case EAGAIN:
      return text + "; the limit on processes is reached (ulimit -u): lower budget.parallelism";
    case ENOMEM:
      return text + "; lower budget.parallelism";
    case EMFILE:
    case ENFILE:
      return text + "; the limit on open files is reached (ulimit -n): lower budget.parallelism";
    default:
      return text + "; the program is still being written";
  }
}

std::string stop_sentence(const RunEnd& end) {
  std::string text;
  switch (end.cause) {
    case StopCause::kShutdown:
      text = "stopped because fettle run was interrupted";
      break;
    case StopCause::kRunnerGone:
      text = "stopped because fettle run had died";
      break;
    default:
      text = "stopped";
      break;
  }
  if (end.killed_after_grace) {
    const std::string who = end.report.left_behind > 0
                                ? std::to_string(end.report.left_behind) + " of its processes"
                                : "it";
    text += "; " + who + " did not end within " +
            api::format_duration(double(end.grace_ms) / 1000) + " of SIGTERM and " +
            (end.report.left_behind > 1 ? "were" : "was") + " killed";
  }
  return text;
}

// Its own fault, so that it does not retry for ever: the next run needs as much.
void by_oom_kill(const RunEnd& end, const std::string& what, RunOutcome& out) {
  out.outcome = api::Outcome::kOutOfMemory;
  out.message = what + " by the kernel, because memory ran out; it was last seen to hold " +
                mebibytes(end.peak_memory) + " of this machine's " + mebibytes(end.machine_memory);
}

void by_exit_code(const RunEnd& end, int code, RunOutcome& out) {
  out.exit_code = code;
  if (code == 0) {
    out.outcome = api::Outcome::kSucceeded;
    if (!end.has_metrics) out.message = "exit code 0, but it printed no metric";
  } else if (code == kExitAfterSigkill && end.oom_kills > 0) {
    by_oom_kill(end, "exit code 137: a process of it was killed", out);
  } else if (code == kExitAfterSigterm) {
    out.outcome = api::Outcome::kDisrupted;
    out.message = "exit code 143: somebody else sent it SIGTERM";
  } else if (code == api::kWorkerMissesOthers && end.has_others) {
    out.outcome = api::Outcome::kDisrupted;
    out.message = "exit code 75: another worker did not come or was lost";
  } else {
    out.outcome = api::Outcome::kFailed;
    out.message = "exit code " + std::to_string(code);
  }
}

void by_signal(const RunEnd& end, int signal, RunOutcome& out) {
  out.signal = signal;
  const bool from_outside =
      signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
  out.outcome = from_outside ? api::Outcome::kDisrupted : api::Outcome::kFailed;
  out.message = (from_outside ? "killed from outside by " : "crashed with ") + signal_name(signal);
  if (!from_outside) out.message += std::string(" (") + ::sigdescr_np(signal) + ")";
  if (signal == SIGKILL && end.oom_kills > 0) {
    by_oom_kill(end, "killed by SIGKILL", out);
  } else if (signal == SIGKILL && end.peak_memory > end.machine_memory / 2) {
    out.outcome = api::Outcome::kOutOfMemory;
    out.message = "killed by SIGKILL while it held " + mebibytes(end.peak_memory) + " of this " +
                  "machine's " + mebibytes(end.machine_memory) +
                  ": most likely by the kernel, because memory ran out";
  }
}

void by_memory_limit(const RunEnd& end, RunOutcome& out) {
  out.outcome = api::Outcome::kOutOfMemory;
  out.message = "used " + mebibytes(end.peak_memory) + " of memory, more than its limit of " +
                mebibytes(end.memory_limit) + " (resources.limits.memory)";
}

void by_end(const RunEnd& end, RunOutcome& out) {
  const int status = end.report.wait_status;
  if (WIFSIGNALED(status)) {
    by_signal(end, WTERMSIG(status), out);
  } else {
    by_exit_code(end, WEXITSTATUS(status), out);
  }
  if (end.cause == StopCause::kNone) return;
  // A run that finished before it noticed has succeeded. Exit code 0 alone does not prove that:
  // many programs exit with 0 on SIGTERM.
  if (out.outcome == api::Outcome::kSucceeded && end.final_result) return;
  if (end.cause == StopCause::kMemory) return by_memory_limit(end, out);
  out.outcome = end.cause == StopCause::kAsked ? api::Outcome::kStopped : api::Outcome::kDisrupted;
  out.message = stop_sentence(end);
}

void add_sentence(std::string& message, const std::string& sentence) {
  if (!message.empty()) message += "; ";
  message += sentence;
}

}  // namespace

RunOutcome explain(const RunEnd& end) {
  RunOutcome out;
  out.peak_memory = end.peak_memory;
  if (!end.reported) {
    out.outcome = api::Outcome::kDisrupted;
    out.message = "the process that guards it was killed from outside";
  } else if (end.report.failure != GuardReport::kNone) {
    const bool for_now = end.report.failure == GuardReport::kNoRoom;
    out.outcome = for_now ? api::Outcome::kDisrupted : api::Outcome::kFailed;
    out.message = for_now ? no_room(end) : cannot_start(end);
    if (for_now && end.cause == StopCause::kAsked) out.outcome = api::Outcome::kStopped;
    return out;
  } else {
    by_end(end, out);
    // Worker 0 stands for the trial; any other is named.
    if (end.report.rank > 0 && !out.message.empty()) {
      out.message = "rank " + std::to_string(end.report.rank) + " of its workers: " + out.message;
    }
  }
  const bool said = end.killed_after_grace && out.outcome != api::Outcome::kSucceeded;
  if (end.report.left_behind > 0 && !said) {
    add_sentence(out.message, "it left " + std::to_string(end.report.left_behind) +
                                  " processes behind, which were killed");
  }
  if (!end.log_error.empty()) add_sentence(out.message, end.log_error);
  const bool good =
      out.outcome == api::Outcome::kSucceeded || out.outcome == api::Outcome::kStopped;
  if ((!good || !end.has_metrics) && !end.last_lines.empty()) {
    out.message += "; its last output:\n" + end.last_lines;
  }
  return out;
}

}  // namespace fettle::local
