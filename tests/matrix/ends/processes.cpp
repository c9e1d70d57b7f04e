// The ending in the supervisor's view on one machine (runtime/local/process/run_end.h), or in the
// log that a killed supervisor leaves (runtime/local/run/recorded_run.h).
#include <signal.h>
#include <stdlib.h>

#include <filesystem>

#include "api/trial/trial_file.h"
#include "base/check.h"
#include "base/file.h"
#include "core/names.h"
#include "runtime/local/process/run_end.h"
#include "runtime/local/run/recorded_run.h"
#include "tests/matrix/ends/ending.h"

namespace fettle::ends {
namespace {

// Returns a status as from waitpid(): a signal in the low bits, an exit code above them.
int wait_status_of(Exit exit) {
  switch (exit) {
    case Exit::kZero:
      return 0;
    case Exit::kOne:
      return 1 << 8;
    case Exit::kMissesOthers:
      return 75 << 8;
    case Exit::kSigterm:
      return 143 << 8;
    case Exit::kSigkill:
    case Exit::kMemory:
      return SIGKILL;
    case Exit::kCrash:
      return SIGSEGV;
  }
  return 1 << 8;
}

std::string lines_of(Said said) {
  std::string lines;
  const std::optional<api::Report> report = report_of(said);
  for (std::int64_t step = 1; report && step <= report->step; ++step) {
    const bool last = step == report->step && report->final_result;
    lines += R"({"step": )" + std::to_string(step) + R"(, "loss": 0.5)" +
             (last ? R"(, "final": true)" : "") + "}\n";
  }
  return lines;
}

core::Run run_of_log(const Ending& ending) {
  std::string root = (std::filesystem::temp_directory_path() / "fettle-ends-XXXXXX").string();
  CHECK(::mkdtemp(root.data()) != nullptr, "no temporary directory");
  const local::Layout layout = local::make_layout(root, "digits");
  api::Trial trial;
  trial.metadata.name = "digits-0";
  trial.metadata.labels[core::kStudyUidLabel] = "study";
  api::TrialFile file;
  file.study = "digits";
  file.study_uid = "study";
  file.trial = "digits-0";
  CHECK(make_directories(layout.run_directory("digits-0", 0)).ok(), "a directory");
  CHECK(write_file(layout.trial_file("digits-0", 0), api::write_trial_file(file).dump()).ok(),
        "a trial file");
  CHECK(write_file(layout.log_file("digits-0", 0), lines_of(ending.said)).ok(), "a log");
  const auto run = local::recall_run(layout, trial, 0, [&](const api::Trial&) {
    return std::optional(runtime::metric_options(study_of(ending)));
  });
  std::filesystem::remove_all(root);
  CHECK(run, "it has begun");
  return *run;
}

local::StopCause cause_of(const Ending& ending) {
  if (ending.stop != Stop::kNone) return local::StopCause::kAsked;
  return ending.fate == Fate::kMoved ? local::StopCause::kShutdown : local::StopCause::kNone;
}

}  // namespace

core::Run process_run(const Ending& ending) {
  if (ending.fate == Fate::kLost) return run_of_log(ending);
  const std::optional<api::Report> report = report_of(ending.said);
  local::RunEnd end;
  end.command.arguments = {"train"};
  end.process.cause = cause_of(ending);
  end.process.reported = ending.fate != Fate::kDeleted;
  end.process.report.wait_status = wait_status_of(ending.exit);
  end.process.report.over_memory = ending.exit == Exit::kMemory ? 1 : 0;
  end.machine_memory = 1'000'000;
  end.has_metrics = report.has_value();
  end.final_result = report && report->final_result;
  local::RunOutcome outcome = local::explain(end);
  outcome.started_ms = kStartedMs;
  outcome.ended_ms = kEndedMs;
  outcome.report = report;
  core::Run run;
  local::take_outcome(outcome, run);
  return run;
}

}  // namespace fettle::ends
