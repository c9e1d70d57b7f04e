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
#include "trainer/program/trial_run.h"
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

// ---- This process as the trial's host --------------------------------------------------------

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TrialHost this_process() {
  return {.print = print_line,
          .log = log_line,
          .is_stopped = [] { return signal_received != 0; },
          // As if SIGTERM had come, so that the exit code is the same.
          .stop = [] { signal_received = SIGTERM; },
          .pod = variable("FETTLE_POD_UID"),
          .tensorboard = variable("FETTLE_TENSORBOARD")};
}

// Publishes the ranks that rank 0 waits for in the Trial's status, until it trains.
void report_waiting(Reporting& reporting, const std::string& waits_for) {
  if (waits_for.empty() || reporting.sink == nullptr) return;
  reporting.says_that_it_waits = true;
  reporting.sink->submit_waiting(waits_for);
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
  const TrialHost host = this_process();
  Reporting reporting;
  if (rank == 0) {
    FETTLE_ASSIGN(reporting, of_this_process(open_reporting(process, host)));
    FETTLE_TRY(of_this_process(claim_checkpoints(process, host, task)));
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
  const TrainingHooks hooks = make_hooks(reporting, host, trace ? &*trace : nullptr);
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
  explain_bus_errors();
  const Result<TrainingResult> trained = train(arguments, *process);
  // This process has received no signal if another worker was told to stop.
  const int signal = signal_received != 0 ? signal_received.load() : SIGTERM;
  return exit_code_of(trained, this_process(), signal);
}

}  // namespace fettle::trainer
