#include "trainer/program/trial_run.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "trainer/program/console.h"

namespace fettle::trainer {
namespace {

double seconds_since_1970() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Null if FETTLE_TENSORBOARD is not set.
Result<std::unique_ptr<TensorBoardFile>> open_tensorboard(const ProcessTask& process,
                                                          std::string directory) {
  if (directory.empty()) return std::unique_ptr<TensorBoardFile>();
  if (directory.front() != '/') {
    return invalid("FETTLE_TENSORBOARD is \"" + directory +
                   "\", expected a path that begins with /: trials have folders of their own");
  }
  if (process.trial) directory += "/" + process.trial->study + "/" + process.trial->trial;
  FETTLE_ASSIGN(TensorBoardFile file, TensorBoardFile::create(directory, seconds_since_1970()));
  return std::make_unique<TensorBoardFile>(std::move(file));
}

// The names of a deep network's layers take most of a line.
std::string line_of(EpochReport report, std::size_t longest) {
  std::string line = to_line(report);
  if (longest == 0 || line.size() <= longest) return line;
  report.implementations = {};
  return to_line(report);
}

// Data files are mapped: if one is truncated, or its disk fails, reading it ends here.
void on_bus_error(int /*number*/) {
  constexpr char kWords[] =
      "fettle-trainer: a file that was read became shorter, or cannot be read any more "
      "(SIGBUS); put new data files in place by rename\n";
  (void)!::write(STDERR_FILENO, kWords, sizeof kWords - 1);
  ::_exit(kFailed);
}

// Names this process to people who read why another process may no longer write checkpoints.
std::string name_of_process(const TrialHost& host) {
  if (!host.pod.empty()) return "pod " + host.pod;
  char machine[256] = "";
  ::gethostname(machine, sizeof machine - 1);
  return "process " + std::to_string(::getpid()) + " on " + machine;
}

}  // namespace

void explain_bus_errors() { std::signal(SIGBUS, on_bus_error); }

Result<Reporting> open_reporting(const ProcessTask& process, const TrialHost& host) {
  Reporting reporting;
  if (process.trial) {
    FETTLE_ASSIGN(reporting.sink, make_report_sink(*process.trial, host.log));
  }
  FETTLE_ASSIGN(reporting.scalars, open_tensorboard(process, host.tensorboard));
  return reporting;
}

TrainingHooks make_hooks(Reporting& reporting, const TrialHost& host, Trace* trace) {
  ReportSink* const sink = reporting.sink.get();
  TensorBoardFile* const scalars = reporting.scalars.get();
  TrainingHooks hooks;
  hooks.trace = trace;
  hooks.report = [sink, scalars, host](const EpochReport& report) {
    host.print(line_of(report, host.longest_line));
    if (sink != nullptr) sink->submit(report);
    if (scalars == nullptr) return;
    // An event file that cannot be written is no reason to lose a training.
    const Status drawn = scalars->add(report.step, report.metrics, seconds_since_1970());
    if (!drawn.ok()) host.log(drawn.error().message);
  };
  hooks.log = host.log;
  hooks.begin = [&reporting](std::int64_t epoch) {
    if (!std::exchange(reporting.says_that_it_waits, false)) return;
    EpochReport begins;  // without values: earlier ones stay
    begins.step = epoch;
    reporting.sink->submit(begins);  // not null: report_waiting() has used it
  };
  hooks.should_stop = [sink, trace, is_stopped = host.is_stopped, stop = host.stop] {
    if (trace != nullptr && trace->is_full()) return true;
    if (sink != nullptr && sink->stop_wanted() && !is_stopped()) stop();
    return is_stopped();
  };
  return hooks;
}

Status claim_checkpoints(const ProcessTask& process, const TrialHost& host, TrainingTask& task) {
  if (task.checkpoints.empty()) return success();
  const std::int64_t run = process.trial ? process.trial->run : 0;
  FETTLE_ASSIGN(task.fence, CheckpointFence::claim(task.checkpoints, run, name_of_process(host)));
  return success();
}

int exit_code_of(const Result<TrainingResult>& trained, const TrialHost& host, int signal) {
  if (!trained.ok()) {
    host.log(trained.error().message);
    return trained.error().code == ErrorCode::kUnavailable ? kMissesOthers
                                                           : code_of(trained.error());
  }
  if (trained->ending != Ending::kStopped) return 0;
  if (trained->left) {
    host.log("left; the others continue");
  } else if (trained->began) {
    host.log(trained->saved ? "stopped; the checkpoint is written"
                            : "stopped before the others answered; the newest checkpoint stands");
  }
  return kSignalled + signal;
}

}  // namespace fettle::trainer
