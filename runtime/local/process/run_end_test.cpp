// How runs end, in words: one row for each kind of end.
#include "runtime/local/process/run_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace fettle::local {
namespace {

using api::Outcome;

constexpr int exited(int code) { return code << 8; }
constexpr int killed(int signal) { return signal; }
constexpr std::int64_t kMiB = 1 << 20;

struct Row {
  int wait_status;
  StopCause cause;
  bool final_result;
  bool killed_after_grace;
  std::int64_t peak;  // MiB
  Outcome outcome;
  const char* said;
  std::int64_t oom_kills = 0;
  std::int32_t over_memory = 0;
};

TEST(Explain, EveryEnd) {
  const Row rows[] = {
      {exited(0), StopCause::kNone, false, false, 1, Outcome::kSucceeded, ""},
      {exited(0), StopCause::kAsked, true, false, 1, Outcome::kSucceeded, ""},
      {exited(0), StopCause::kAsked, false, false, 1, Outcome::kStopped, "stopped"},
      {exited(143), StopCause::kAsked, false, false, 1, Outcome::kStopped, "stopped"},
      {exited(1), StopCause::kAsked, false, false, 1, Outcome::kStopped, "stopped"},
      {killed(SIGKILL), StopCause::kAsked, false, true, 1, Outcome::kStopped,
       "stopped; it did not end within 30s of SIGTERM and was killed"},
      {killed(SIGTERM), StopCause::kShutdown, false, false, 1, Outcome::kDisrupted,
       "stopped because fettle run was interrupted"},
      {killed(SIGTERM), StopCause::kRunnerGone, false, false, 1, Outcome::kDisrupted,
       "stopped because fettle run had died"},
      {exited(7), StopCause::kNone, false, false, 1, Outcome::kFailed, "exit code 7"},
      {killed(SIGFPE), StopCause::kNone, false, false, 1, Outcome::kFailed,
       "crashed with SIGFPE (Floating point exception)"},
      {killed(SIGKILL), StopCause::kNone, false, false, 10, Outcome::kDisrupted,
       "killed from outside by SIGKILL"},
      {killed(SIGKILL), StopCause::kNone, false, false, 600, Outcome::kOutOfMemory,
       "killed by SIGKILL while it held 600 MiB of this machine's 1000 MiB: most likely by the "
       "kernel, because memory ran out"},
      {killed(SIGKILL), StopCause::kNone, false, false, 10, Outcome::kOutOfMemory,
       "killed by SIGKILL by the kernel, because memory ran out; it was last seen to hold 10 MiB "
       "of "
       "this machine's 1000 MiB",
       1},
      {exited(137), StopCause::kNone, false, false, 10, Outcome::kOutOfMemory,
       "exit code 137: a process of it was killed by the kernel, because memory ran out; it was "
       "last seen to hold 10 MiB of this machine's 1000 MiB",
       2},
      {exited(137), StopCause::kNone, false, false, 10, Outcome::kFailed, "exit code 137"},
      {exited(1), StopCause::kNone, false, false, 10, Outcome::kFailed, "exit code 1", 1},
      {killed(SIGKILL), StopCause::kAsked, false, false, 10, Outcome::kStopped, "stopped", 1},
      {killed(SIGKILL), StopCause::kNone, false, false, 300, Outcome::kOutOfMemory,
       "used 300 MiB of memory, more than its limit of 256 MiB (resources.limits.memory)", 0, 1},
      {killed(SIGKILL), StopCause::kAsked, false, false, 300, Outcome::kStopped, "stopped", 0, 1},
  };
  for (const Row& row : rows) {
    RunEnd end;
    end.process.report.wait_status = row.wait_status;
    end.process.cause = row.cause;
    end.final_result = row.final_result;
    end.has_metrics = true;
    end.process.killed_after_grace = row.killed_after_grace;
    end.command.grace_ms = 30'000;
    end.process.report.over_memory = row.over_memory;
    end.process.report.peak_memory = row.peak * kMiB;
    end.oom_kills = row.oom_kills;
    end.command.memory_limit = 256 * kMiB;
    end.machine_memory = 1000 * kMiB;
    const RunOutcome outcome = explain(end);
    EXPECT_EQ(outcome.outcome, row.outcome) << row.said;
    EXPECT_EQ(outcome.message, row.said);
  }
}

TEST(Explain, WhatNeverStarted) {
  const struct {
    GuardReport::Failure failure;
    int error;
    const char* said;
  } rows[] = {
      {GuardReport::kExec, ENOENT, "command not found: train"},
      {GuardReport::kExec, EACCES, "cannot execute train: permission denied"},
      {GuardReport::kExec, ENOEXEC, "it is no program for this machine"},
      {GuardReport::kExec, E2BIG, "its arguments and environment are too long"},
      {GuardReport::kDirectory, ENOENT,
       "cannot start in the working directory /data: No such file"},
  };
  for (const auto& row : rows) {
    RunEnd end;
    end.command.arguments = {"train"};
    end.command.directory = "/data";
    end.process.report.failure = row.failure;
    end.process.report.error = row.error;
    EXPECT_EQ(explain(end).outcome, Outcome::kFailed);
    EXPECT_THAT(explain(end).message, testing::HasSubstr(row.said));
  }
}

TEST(Explain, WhatCannotStartNowIsNoFaultOfTheStudy) {
  const struct {
    int error;
    const char* said;
  } rows[] = {
      {EAGAIN, "the limit on processes is reached (ulimit -u): lower budget.parallelism"},
      {ENOMEM, "Cannot allocate memory; lower budget.parallelism"},
      {EMFILE, "the limit on open files is reached (ulimit -n): lower budget.parallelism"},
      {ETXTBSY, "the program is still being written"},
  };
  for (const auto& row : rows) {
    RunEnd end;
    end.command.arguments = {"train"};
    end.process.report.failure = GuardReport::kNoRoom;
    end.process.report.error = row.error;
    EXPECT_EQ(explain(end).outcome, Outcome::kDisrupted);
    EXPECT_THAT(explain(end).message, testing::HasSubstr("cannot start train now: "));
    EXPECT_THAT(explain(end).message, testing::HasSubstr(row.said));
    end.process.cause = StopCause::kAsked;
    EXPECT_EQ(explain(end).outcome, Outcome::kStopped);
  }
}

TEST(Explain, WhatWasLeftAfterTheGracePeriodIsSaidOnce) {
  RunEnd end;
  end.process.report.wait_status = killed(SIGTERM);
  end.process.cause = StopCause::kAsked;
  end.process.killed_after_grace = true;
  end.command.grace_ms = 30'000;
  end.has_metrics = true;
  end.process.report.left_behind = 2;
  EXPECT_EQ(explain(end).message,
            "stopped; 2 of its processes did not end within 30s of SIGTERM and were killed");
}

TEST(Explain, TheGuardWasKilled) {
  RunEnd end;
  end.process.reported = false;
  EXPECT_EQ(explain(end).outcome, Outcome::kDisrupted);
}

TEST(Explain, WhatElseWasSeen) {
  RunEnd end;
  end.process.report.wait_status = exited(1);
  end.process.report.left_behind = 3;
  end.log_error = "the log is not complete: No space left on device";
  end.last_lines = "Traceback\nValueError";
  EXPECT_EQ(explain(end).message,
            "exit code 1; it left 3 processes behind, which were killed; the log is not complete: "
            "No space left on device; its last output:\nTraceback\nValueError");
}

TEST(Explain, AWorkerThatMissesOthersIsNotTheTrialsFault) {
  RunEnd end;
  end.process.report.wait_status = 75 << 8;
  EXPECT_EQ(explain(end).outcome, Outcome::kFailed) << "one alone misses no other";
  end.command.workers.resize(2);
  EXPECT_EQ(explain(end).outcome, Outcome::kDisrupted);
}

}  // namespace
}  // namespace fettle::local
