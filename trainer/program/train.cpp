#include "trainer/program/train.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "trainer/elastic_training.h"
#include "trainer/parallel/rank_processes.h"
#include "trainer/parallel/worker_ranks.h"
#include "trainer/program/console.h"
#include "trainer/program/process_task.h"
#include "trainer/reporter/report_sink.h"
#include "trainer/reporter/tensorboard.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

constexpr double kDefaultGrace = 30;  // seconds between SIGTERM and SIGKILL

std::atomic<int> signal_received{0};
static_assert(std::atomic<int>::is_always_lock_free, "set by a signal handler");

std::atomic<bool> is_terminating{false};  // by a signal: SIGKILL may follow
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

void on_signal(int number) {
  signal_received = number;
  is_terminating = true;
}

// Data files are mapped: if one is truncated, or its disk fails, reading it ends here.
void on_bus_error(int /*number*/) {
  constexpr char kWords[] =
      "fettle-trainer: a file that was read became shorter, or cannot be read any more "
      "(SIGBUS); put new data files in place by rename\n";
  (void)!::write(STDERR_FILENO, kWords, sizeof kWords - 1);
  ::_exit(kFailed);
}

// ---- Reports -----------------------------------------------------------------------------------

double seconds_since_1970() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Null if FETTLE_TENSORBOARD is not set.
Result<std::unique_ptr<TensorBoardFile>> open_tensorboard(const ProcessTask& process) {
  const char* root = std::getenv("FETTLE_TENSORBOARD");
  if (root == nullptr || *root == '\0') return std::unique_ptr<TensorBoardFile>();
  std::string directory = root;
  if (directory.front() != '/') {
    return invalid("FETTLE_TENSORBOARD is \"" + directory +
                   "\", expected a path that begins with /: trials have folders of their own");
  }
  if (process.trial) directory += "/" + process.trial->study + "/" + process.trial->trial;
  FETTLE_ASSIGN(TensorBoardFile file, TensorBoardFile::create(directory, seconds_since_1970()));
  return std::make_unique<TensorBoardFile>(std::move(file));
}

// Receivers of rank 0's reports besides standard output; both may be null.
struct Reporting {
  std::unique_ptr<ReportSink> sink;
  std::unique_ptr<TensorBoardFile> scalars;
  bool says_that_it_waits = false;
};

// Publishes the ranks that rank 0 waits for in the Trial's status, until it trains.
void report_waiting(Reporting& reporting, const std::string& waits_for) {
  if (waits_for.empty() || reporting.sink == nullptr) return;
  reporting.says_that_it_waits = true;
  reporting.sink->submit_waiting(waits_for);
}

Result<Reporting> open_reporting(const ProcessTask& process) {
  Reporting reporting;
  if (process.trial) {
    FETTLE_ASSIGN(reporting.sink, make_report_sink(*process.trial, log_line));
  }
  FETTLE_ASSIGN(reporting.scalars, open_tensorboard(process));
  return reporting;
}

// `reporting` must outlive the hooks.
TrainingHooks make_hooks(Reporting& reporting, Trace* trace) {
  ReportSink* const sink = reporting.sink.get();
  TensorBoardFile* const scalars = reporting.scalars.get();
  TrainingHooks hooks;
  hooks.trace = trace;
  hooks.report = [sink, scalars](const EpochReport& report) {
    print_line(to_line(report));
    if (sink != nullptr) sink->submit(report);
    if (scalars == nullptr) return;
    // An event file that cannot be written is no reason to lose a training.
    const Status drawn = scalars->add(report.step, report.metrics, seconds_since_1970());
    if (!drawn.ok()) log_line(drawn.error().message);
  };
  hooks.log = log_line;
  hooks.begin = [&reporting](std::int64_t epoch) {
    if (!std::exchange(reporting.says_that_it_waits, false)) return;
    EpochReport begins;  // without values: earlier ones stay
    begins.step = epoch;
    reporting.sink->submit(begins);  // not null: report_waiting() has used it
  };
  hooks.should_stop = [sink, trace] {
    if (trace != nullptr && trace->is_full()) return true;
    // As if SIGTERM had come, so that the exit code is the same.
    if (sink != nullptr && sink->stop_wanted() && signal_received == 0) {
      signal_received = SIGTERM;
    }
    return signal_received != 0;
  };
  return hooks;
}

// ---- The trace of --profile --------------------------------------------------------------------

std::string trace_path(const Arguments& arguments, const TrainingTask& task, std::int64_t rank) {
  std::string path = arguments.trace;
  if (path.empty())
    path = task.checkpoints.empty() ? "trace.json" : task.checkpoints + "/trace.json";
  if (rank == 0) return path;
  const std::filesystem::path whole(path);
  return whole.parent_path() /
         (whole.stem().string() + "." + std::to_string(rank) + whole.extension().string());
}

Status write_trace(const Trace& trace, const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path();
  if (!directory.empty()) FETTLE_TRY(make_directories(directory));
  FETTLE_TRY(trace.write(path));
  log_line("wrote " + path + "; https://ui.perfetto.dev opens it");
  return success();
}

// ---- Workers -----------------------------------------------------------------------------------

// The place of this process among the trial's ranks, if there are several or more may come. Errors:
// WORLD_SIZE is not the number of ranks in the trial file.
Result<std::optional<WorkerPlace>> find_place(const ProcessTask& process) {
  // A trial with a minimum number of workers may be resized: workers may come later.
  const bool open = process.trial && process.trial->least_workers;
  FETTLE_ASSIGN(std::optional<WorkerPlace> place, place_of_worker(std::getenv, open));
  const std::int64_t world_size = place ? place->rendezvous.world_size : 1;
  if (const auto& trial = process.trial) {
    // Each GPU has its own process, which is a rank.
    const std::int64_t ranks = trial->workers * process.gpus;
    if (ranks != world_size) {
      return invalid("the trial has " + std::to_string(ranks) +
                     (process.gpus > 1 ? " GPUs" : " workers") + ", but WORLD_SIZE says " +
                     std::to_string(world_size));
    }
    if (place) place->rendezvous.trial = trial->study_uid + "/" + trial->trial;
    if (place) place->rendezvous.run = trial->run;
  }
  if (!place) return place;
  place->rendezvous.log = log_line;
  // Rank 0 needs time to save and to report; the others save nothing.
  const double grace = process.trial ? process.trial->grace_period : kDefaultGrace;
  const double share = place->rendezvous.rank == 0 ? 1.0 / 3 : 2.0 / 3;
  place->rendezvous.termination = {
      [] { return is_terminating.load(); },
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * grace * share))};
  return place;
}

// Ranks that must be left for the others to continue when one is lost.
std::int64_t least_ranks(const ProcessTask& process, const WorkerPlace& place) {
  const bool open = process.trial && process.trial->least_workers;
  return open ? *process.trial->least_workers * process.gpus : place.rendezvous.world_size;
}

// Names this process to people who read why another process may no longer write checkpoints.
std::string name_of_this_process() {
  const char* const pod = std::getenv("FETTLE_POD_UID");
  if (pod != nullptr && *pod != '\0') return std::string("pod ") + pod;
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return "process " + std::to_string(::getpid()) + " on " + host;
}

// kUnavailable means that other workers are missing: any other shortage, such as disk space, is
// this process's failure.
template <class T>
Result<T> of_this_process(Result<T> result) {
  if (result.ok() || result.error().code != ErrorCode::kUnavailable) return result;
  return io_error(result.error().message);
}

// Claims before reading, so that no other process writes a newer checkpoint afterwards.
Status claim_checkpoints(const ProcessTask& process, TrainingTask& task) {
  if (task.checkpoints.empty()) return success();
  const std::int64_t run = process.trial ? process.trial->run : 0;
  FETTLE_ASSIGN(task.fence, CheckpointFence::claim(task.checkpoints, run, name_of_this_process()));
  return success();
}

Result<TrainingResult> train_alone(const TrainingTask& task, const TrainingData& data,
                                   const TrainingHooks& hooks) {
  SingleProcess collective;
  FETTLE_ASSIGN(const auto training, Training::create(task, data, collective, hooks));
  FETTLE_ASSIGN(const Ending ending, training->run());
  return TrainingResult{ending, /*left=*/false};
}

Result<TrainingResult> train(const Arguments& arguments, const ProcessTask& process) {
  TrainingTask task = process.task;
  FETTLE_ASSIGN(std::optional<WorkerPlace> place, find_place(process));
  const std::int64_t rank = place ? place->rendezvous.rank : 0;
  Reporting reporting;
  if (rank == 0) {
    FETTLE_ASSIGN(reporting, of_this_process(open_reporting(process)));
    FETTLE_TRY(of_this_process(claim_checkpoints(process, task)));
  }
  if (place) {
    place->rendezvous.waits_for = [&reporting](const std::string& words) {
      report_waiting(reporting, words);
    };
  }
  DataCache cache = DataCache::from_environment();
  FETTLE_ASSIGN(const TrainingData data, load_training_data(task.config.data, cache));
  if (place) place->rendezvous.data = data.fingerprint.digest();
  std::optional<Trace> trace;
  if (arguments.profiled_steps) trace.emplace(rank, *arguments.profiled_steps);
  const TrainingHooks hooks = make_hooks(reporting, trace ? &*trace : nullptr);
  Result<TrainingResult> trained =
      place ? train_elastically(task, data, *place, least_ranks(process, *place), hooks)
            : of_this_process(train_alone(task, data, hooks));
  // If they go only to standard output, lost reports are a lost result.
  if (trained.ok() && reporting.sink == nullptr && lost_a_line()) {
    return io_error("reports are lost, since standard output could not be written");
  }
  if (reporting.sink != nullptr && trained.ok()) {
    reporting.sink->finish(/*stopped=*/trained->ending == Ending::kStopped);
  }
  if (trace && trained.ok()) {
    FETTLE_TRY(of_this_process(write_trace(*trace, trace_path(arguments, task, rank))));
    // The training stopped because the trace is full, which is exit code 0.
    if (signal_received == 0) trained->ending = Ending::kReached;
  }
  return trained;
}

// Runs one process for each GPU of this worker.
Result<int> train_on_several(const ProcessTask& process, char** argv) {
  FETTLE_ASSIGN(const Meeting alone, meet_on_loopback());
  FETTLE_ASSIGN(const auto ranks, rank_variables(std::getenv, process.gpus, alone));
  return run_ranks(ranks, argv, log_line);
}

int exit_code_of(const Result<TrainingResult>& trained) {
  if (!trained.ok()) {
    const int code = fail(trained.error());
    return trained.error().code == ErrorCode::kUnavailable ? kMissesOthers : code;
  }
  if (trained->ending != Ending::kStopped) return 0;
  if (trained->left) {
    log_line("left; the others continue");
  } else if (trained->began) {
    log_line(trained->saved ? "stopped; the checkpoint is written"
                            : "stopped before the others answered; the newest checkpoint stands");
  }
  // This process has received no signal if another worker was told to stop.
  return kSignalled + (signal_received != 0 ? signal_received.load() : SIGTERM);
}

}  // namespace

int train_here(const Arguments& arguments, char** argv) {
  const auto process = read_process_task(arguments.file, arguments.overrides);
  if (!process.ok()) return fail(process.error());
  if (process->gpus > 1 && !is_rank_of_worker(std::getenv)) {
    const auto code = train_on_several(*process, argv);
    return code.ok() ? *code : fail(code.error());
  }
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
  std::signal(SIGBUS, on_bus_error);
  return exit_code_of(train(arguments, *process));
}

}  // namespace fettle::trainer
