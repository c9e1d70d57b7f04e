// fettle-trainer: trains one trial with the built-in trainer.
//
// Reads the trial file that FETTLE_TRIAL or the argument names. Standard output carries the
// reports, one JSON object a line; people read standard error. Exit codes: 0 untilStep is reached,
// 143 stopped by SIGTERM (130 by SIGINT) after a checkpoint, 1 failed, 2 wrong input, 75 another
// worker did not come or was lost.
#include <getopt.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "api/names.h"
#include "base/file.h"
#include "kernels/backends/cuda/loader.h"
#include "trainer/bench.h"
#include "trainer/dry_run.h"
#include "trainer/job.h"
#include "trainer/open_backend.h"
#include "trainer/outlet.h"
#include "trainer/parallel/rank_processes.h"
#include "trainer/parallel/together.h"
#include "trainer/parallel/worker_ranks.h"
#include "trainer/tensorboard.h"
#include "trainer/training.h"
#include "trainer/tune.h"

namespace fettle::trainer {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongInput = api::kTrainerRefusesInput;
constexpr int kMissesOthers = api::kWorkerMissesOthers;
constexpr int kSignalled = 128;

constexpr std::string_view kUsage =
    R"(Usage: fettle-trainer [FILE]           trains the trial or the configuration in FILE (JSON);
                                       default: the file that FETTLE_TRIAL names
       fettle-trainer --bench MODEL    measures the training loop on synthetic samples; MODEL: mlp,
                                       cnn, resnet9, resnet18, resnet50, chargpt or gpt2

With a trainer's configuration as FILE:
  --seed N             seed of weights, order, augmentation and dropout (0)
  --until-epoch N      stop after so many epochs (training.epochs)
  --checkpoints DIR    write checkpoints there, go on from the newest one (none)
  --gpus N             train on N GPUs of this machine, with a process for each (those of the
                       trial's worker, or 1); every one counts as a worker
  --profile[=STEPS]    writes a trace of so many optimiser steps (10) that Perfetto opens, layer
                       by layer, and stops there as by SIGTERM, but with exit code 0
  --trace PATH         ... to this file (trace.json beside the checkpoints; of rank 3 of several
                       workers trace.3.json)

Without training:
  --dry-run            says what memory the training in FILE needs, part by part, which
                       maxPerWorker fits this machine, and what a step costs
  --workers N          ... with so many workers (those of the trial, or 1)
  --output text|json   ... for people or for programs (text)
  --backends           which backends this build and machine have, as JSON

Kernels on a GPU (backend cuda):
  --tune-kernels       measures which launch configuration of each kernel is the fastest on this
                       GPU and keeps them for all later trainings here; prints a table (--output)
  --time-kernel NAME   prints how many microseconds one kernel takes, as a line that a Study reads
                       (examples/kernel-launch.yaml); an unknown NAME lists those there are
  --threads N, --blocks-per-multiprocessor N
                       ... launched so (those of every training without tuning)
  --keep               ... and keeps this for all later trainings here
  --elements N         measured on so many elements (33554432)

With --bench:
  --precision fp32|bf16|fp16, --backend auto|reference|onednn|cuda, --threads N, --batch N, --seconds X

  --help, --version

Environment:
  FETTLE_DATA_CACHE  directory for decompressed data files, or "off" (default: fettle/data
                     below $XDG_CACHE_HOME or ~/.cache)
  FETTLE_KERNEL_CACHE
                     directory for launch configurations that were tuned, or "off" (default:
                     fettle/kernels below $XDG_CACHE_HOME or ~/.cache)
  FETTLE_REPORT      "kubernetes": in a pod, write status.report of the Trial, too, and stop when
                     its spec says so
  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
                     of a trial with several workers: this one, how many there are, and where they
                     meet rank 0, which alone reports
  LOCAL_WORLD_SIZE   set where this is the process of one of several GPUs of a worker already, and
                     RANK and WORLD_SIZE count those
  FETTLE_RENDEZVOUS_TOKEN
                     what only the workers of one trial know (none)
  FETTLE_RENDEZVOUS_SECONDS, FETTLE_COLLECTIVE_SECONDS
                     how long workers wait until all are there (0: without limit), and for each
                     other afterwards (300, 300)
  FETTLE_CUDA_LIBRARY  libfettle_cuda.so, where it lies neither beside this program nor in ../lib
  FETTLE_TENSORBOARD  an absolute directory for TensorBoard's event files: each trial's metrics
                     go to STUDY/TRIAL below it

Exit codes: 0 trained or measured, 143 stopped (by SIGTERM, or by the Trial) after a checkpoint,
1 failed, 2 wrong input, 75 another worker of the trial did not come or was lost.
)";

std::atomic<int> signal_received{0};
static_assert(std::atomic<int>::is_always_lock_free, "set by a signal handler");

void on_signal(int number) { signal_received = number; }

// Which of several workers speaks: " 2"; "" for one alone.
std::string speaker() {
  const char* const rank = std::getenv("RANK");
  const char* const world_size = std::getenv("WORLD_SIZE");
  const bool several = world_size != nullptr && std::string_view(world_size) != "1";
  return several && rank != nullptr ? std::string(" ") + rank : "";
}

void log_line(const std::string& line) {
  std::fprintf(stderr, "fettle-trainer%s: %s\n", speaker().c_str(), line.c_str());
}

int fail(const Error& error) {
  log_line(error.message);
  const bool wrong_input = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kNotFound;
  return wrong_input ? kWrongInput : kFailed;
}

struct Arguments {
  std::string file;
  ByHand by_hand;
  BenchSettings bench;
  bool benches = false;
  bool dry_run = false;
  std::optional<std::int64_t> profiled_steps;
  std::string trace;
  bool backends = false;
  bool tune_kernels = false;
  TimedLaunch launch;  // of a kernel that is to be timed, if it has a name
  bool as_json = false;
  std::optional<std::int64_t> workers;
  bool help = false;
  bool version = false;
};

template <class T>
Status read_number(std::string_view option, std::string_view text, T& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc() || end != text.data() + text.size() || to < T{}) {
    return invalid("--" + std::string(option) + " is \"" + std::string(text) +
                   "\", expected a number of at least 0");
  }
  return success();
}

// As people write large numbers: 1e8.
Status read_elements(std::string_view text, std::int64_t& to) {
  constexpr double kMost = 1LL << 40;
  double number = 0;
  FETTLE_TRY(read_number("elements", text, number));
  if (!(number >= 1 && number <= kMost) || number != std::floor(number)) {
    return invalid("--elements is \"" + std::string(text) +
                   "\", expected a whole number from 1 to 2^40");
  }
  to = static_cast<std::int64_t>(number);
  return success();
}

Status read_gpus(std::string_view text, std::int64_t& to) {
  constexpr std::int64_t kMost = 64;
  FETTLE_TRY(read_number("gpus", text, to));
  if (to >= 1 && to <= kMost) return success();
  return invalid("--gpus is \"" + std::string(text) + "\", expected a number from 1 to 64");
}

template <class E>
Status read_name(std::string_view option, std::string_view text, E& to) {
  const auto value = api::from_string<E>(text);
  if (!value) return invalid("--" + std::string(option) + " has no \"" + std::string(text) + "\"");
  to = *value;
  return success();
}

Status read_output(std::string_view name, bool& as_json) {
  if (name != "text" && name != "json") {
    return invalid("--output is \"" + std::string(name) + "\", expected text or json");
  }
  as_json = name == "json";
  return success();
}

Status read_option(std::string_view option, const char* value, Arguments& to) {
  api::TrainingConfig& training = to.bench.training;
  if (option == "help") to.help = true;
  if (option == "dry-run") to.dry_run = true;
  if (option == "trace") to.trace = value;
  if (option == "profile") {
    return read_number(option, value == nullptr ? "10" : value, to.profiled_steps.emplace());
  }
  if (option == "backends") to.backends = true;
  if (option == "workers") return read_number(option, value, to.workers.emplace());
  if (option == "output") return read_output(value, to.as_json);
  if (option == "version") to.version = true;
  if (option == "checkpoints") to.by_hand.checkpoints = value;
  if (option == "seed") return read_number(option, value, to.by_hand.seed);
  if (option == "gpus") return read_gpus(value, to.by_hand.gpus.emplace());
  if (option == "until-epoch") {
    return read_number(option, value, to.by_hand.until_epoch.emplace());
  }
  if (option == "bench") {
    to.benches = true;
    to.bench.model = value;
  }
  if (option == "precision") return read_name(option, value, training.precision);
  if (option == "backend") return read_name(option, value, training.backend);
  if (option == "tune-kernels") to.tune_kernels = true;
  if (option == "time-kernel") to.launch.kernel = value;
  if (option == "blocks-per-multiprocessor") {
    return read_number(option, value, to.launch.blocks_per_multiprocessor.emplace());
  }
  if (option == "elements") return read_elements(value, to.launch.elements);
  if (option == "keep") to.launch.keep = true;
  if (option == "threads") {
    FETTLE_TRY(read_number(option, value, to.launch.threads.emplace()));
    training.threads = *to.launch.threads;
  }
  if (option == "batch") return read_number(option, value, training.global_batch.emplace());
  if (option == "seconds") return read_number(option, value, to.bench.seconds);
  return success();
}

Result<Arguments> read_arguments(int argc, char** argv) {
  static const option kOptions[] = {
      {"help", no_argument, nullptr, 0},
      {"version", no_argument, nullptr, 0},
      {"dry-run", no_argument, nullptr, 0},
      {"profile", optional_argument, nullptr, 0},
      {"trace", required_argument, nullptr, 0},
      {"backends", no_argument, nullptr, 0},
      {"workers", required_argument, nullptr, 0},
      {"output", required_argument, nullptr, 0},
      {"seed", required_argument, nullptr, 0},
      {"until-epoch", required_argument, nullptr, 0},
      {"checkpoints", required_argument, nullptr, 0},
      {"gpus", required_argument, nullptr, 0},
      {"bench", required_argument, nullptr, 0},
      {"precision", required_argument, nullptr, 0},
      {"backend", required_argument, nullptr, 0},
      {"threads", required_argument, nullptr, 0},
      {"tune-kernels", no_argument, nullptr, 0},
      {"time-kernel", required_argument, nullptr, 0},
      {"blocks-per-multiprocessor", required_argument, nullptr, 0},
      {"elements", required_argument, nullptr, 0},
      {"keep", no_argument, nullptr, 0},
      {"batch", required_argument, nullptr, 0},
      {"seconds", required_argument, nullptr, 0},
      {nullptr, 0, nullptr, 0},
  };
  Arguments arguments;
  int index = 0;
  for (int found; (found = getopt_long(argc, argv, "", kOptions, &index)) != -1;) {
    if (found != 0) return invalid("see fettle-trainer --help");  // getopt has said what is wrong
    FETTLE_TRY(read_option(kOptions[index].name, optarg, arguments));
  }
  if (argc - optind > 1) return invalid("more than one file; see fettle-trainer --help");
  const char* trial = std::getenv("FETTLE_TRIAL");
  if (optind < argc) {
    arguments.file = argv[optind];
  } else if (trial != nullptr) {
    arguments.file = trial;
  }
  return arguments;
}

void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);  // a report must not wait in a buffer
}

double seconds_since_1970() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Null where nobody asked for it.
Result<std::unique_ptr<TensorBoardFile>> open_tensorboard(const Assignment& assignment) {
  const char* root = std::getenv("FETTLE_TENSORBOARD");
  if (root == nullptr || *root == '\0') return std::unique_ptr<TensorBoardFile>();
  std::string directory = root;
  if (directory.front() != '/') {
    return invalid("FETTLE_TENSORBOARD is \"" + directory +
                   "\", expected a path that begins with /: trials have folders of their own");
  }
  if (assignment.trial) directory += "/" + assignment.trial->study + "/" + assignment.trial->trial;
  FETTLE_ASSIGN(TensorBoardFile file, TensorBoardFile::create(directory, seconds_since_1970()));
  return std::make_unique<TensorBoardFile>(std::move(file));
}

// What decides how a training is reported, and when it stops early.
TrainingHooks make_hooks(Outlet* outlet, TensorBoardFile* scalars, Trace* trace) {
  TrainingHooks hooks;
  hooks.trace = trace;
  hooks.report = [outlet, scalars](const Report& report) {
    print_line(to_line(report));
    if (outlet != nullptr) outlet->submit(report);
    if (scalars == nullptr) return;
    // A picture that cannot be drawn is no reason to lose a training.
    const Status drawn = scalars->add(report.step, report.metrics, seconds_since_1970());
    if (!drawn.ok()) log_line(drawn.error().message);
  };
  hooks.log = log_line;
  hooks.should_stop = [outlet, trace] {
    if (trace != nullptr && trace->is_full()) return true;
    // As if somebody had sent a SIGTERM, so that whoever looks at the exit code sees the same.
    if (outlet != nullptr && outlet->stop_wanted() && signal_received == 0) {
      signal_received = SIGTERM;
    }
    return signal_received != 0;
  };
  return hooks;
}

// Who this worker is among those of its trial, if there are several.
Result<std::optional<WorkerPlace>> find_place(const Assignment& assignment) {
  const bool open = assignment.trial && assignment.trial->least_workers;
  FETTLE_ASSIGN(std::optional<WorkerPlace> place, place_of_worker(std::getenv, open));
  const std::int64_t world_size = place ? place->rendezvous.world_size : 1;
  if (const auto& trial = assignment.trial) {
    const std::int64_t ranks = trial->workers * assignment.gpus;
    if (ranks != world_size) {
      return invalid("the trial has " + std::to_string(ranks) +
                     (assignment.gpus > 1 ? " GPUs" : " workers") + ", but WORLD_SIZE says " +
                     std::to_string(world_size));
    }
    if (place) place->rendezvous.trial = trial->study_uid + "/" + trial->trial;
    if (place) place->rendezvous.run = trial->run;
  }
  if (place) place->rendezvous.log = log_line;
  return place;
}

// So many ranks go on when others are lost.
std::int64_t least_ranks(const Assignment& assignment, const WorkerPlace& place) {
  const bool open = assignment.trial && assignment.trial->least_workers;
  return open ? *assignment.trial->least_workers * assignment.gpus : place.rendezvous.world_size;
}

Result<Together> train_alone(const TrainingJob& job, const TrainingData& data,
                             const TrainingHooks& hooks) {
  SingleProcess collective;
  FETTLE_ASSIGN(const auto training, Training::create(job, data, collective, hooks));
  FETTLE_ASSIGN(const Ending ending, training->run());
  return Together{ending, false};
}

std::string trace_path(const Arguments& arguments, const TrainingJob& job, std::int64_t rank) {
  std::string path = arguments.trace;
  if (path.empty()) path = job.checkpoints.empty() ? "trace.json" : job.checkpoints + "/trace.json";
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

Result<Together> train(const Arguments& arguments, const Assignment& assignment) {
  const TrainingJob& job = assignment.job;
  FETTLE_ASSIGN(const std::optional<WorkerPlace> place, find_place(assignment));
  const bool reports = !place || place->rendezvous.rank == 0;
  std::unique_ptr<Outlet> outlet;
  std::unique_ptr<TensorBoardFile> scalars;
  if (assignment.trial && reports) {
    FETTLE_ASSIGN(outlet, make_outlet(*assignment.trial, log_line));
  }
  if (reports) {
    FETTLE_ASSIGN(scalars, open_tensorboard(assignment));
  }
  DataCache cache = DataCache::from_environment();
  FETTLE_ASSIGN(const TrainingData data, load_training_data(job.config.data, cache));
  const std::int64_t rank = place ? place->rendezvous.rank : 0;
  std::optional<Trace> trace;
  if (arguments.profiled_steps) trace.emplace(rank, *arguments.profiled_steps);
  const TrainingHooks hooks = make_hooks(outlet.get(), scalars.get(), trace ? &*trace : nullptr);
  Result<Together> trained =
      place ? train_together(job, data, *place, least_ranks(assignment, *place), hooks)
            : train_alone(job, data, hooks);
  if (outlet != nullptr && trained.ok()) outlet->finish(trained->ending == Ending::kStopped);
  if (trace && trained.ok()) {
    FETTLE_TRY(write_trace(*trace, trace_path(arguments, job, rank)));
    if (signal_received == 0) trained->ending = Ending::kReached;  // it stopped for the trace
  }
  return trained;
}

Result<DryRun> plan_without_training(const Arguments& arguments) {
  FETTLE_ASSIGN(const Assignment assignment, read_assignment(arguments.file, arguments.by_hand));
  const api::TrainerConfig& config = assignment.job.config;
  DataCache cache = DataCache::from_environment();
  FETTLE_ASSIGN(const TrainingData data, load_training_data(config.data, cache));
  FETTLE_ASSIGN(const NetworkPlan plan, plan_network(config.model, data.format()));
  const std::int64_t of_trial = assignment.trial ? assignment.trial->workers : 1;
  const TrainingWorld world = world_of(
      data, std::max<std::int64_t>(arguments.workers.value_or(of_trial), 1) * assignment.gpus);
  return plan_run(config, plan, world, memory_there(config.training, assignment.gpus));
}

int run_dry(const Arguments& arguments) {
  const auto planned = plan_without_training(arguments);
  if (!planned.ok()) return fail(planned.error());
  print_line(arguments.as_json ? to_json(*planned).dump() : to_text(*planned));
  return 0;
}

// {"reference": "ready", "onednn": "this build has no onednn backend: ..."}.
int print_backends() {
  Json found = Json::object();
  for (const auto& [kind, name] : api::enum_names<api::BackendKind>()) {
    if (kind == api::BackendKind::kAuto) continue;
    const auto backend = kernels::make_backend(name, 1);
    found.set(name, backend.ok() ? "ready" : backend.error().message);
  }
  print_line(found.dump());
  return 0;
}

Status tune_and_keep(const Arguments& arguments) {
  FETTLE_ASSIGN(const auto timer, kernels::load_kernel_timer(kernels::cuda_library_places()));
  FETTLE_ASSIGN(const Tuning tuning, tune_kernels(*timer, arguments.launch.elements, log_line));
  print_line(arguments.as_json ? to_json(tuning).dump() : to_text(tuning));
  FETTLE_ASSIGN(const std::string path,
                kernels::cuda::save_launch_configs(tuning.device, tuning.configs()));
  log_line("kept in " + path);
  return success();
}

Status time_one_kernel(const Arguments& arguments) {
  FETTLE_ASSIGN(const auto timer, kernels::load_kernel_timer(kernels::cuda_library_places()));
  FETTLE_ASSIGN(const Json line, time_kernel(*timer, arguments.launch));
  print_line(line.dump());
  return success();
}

int exit_code(const Status& done) { return done.ok() ? 0 : fail(done.error()); }

int exit_code(const Result<Together>& trained) {
  if (!trained.ok()) {
    const int code = fail(trained.error());
    return trained.error().code == ErrorCode::kUnavailable ? kMissesOthers : code;
  }
  if (trained->ending != Ending::kStopped) return 0;
  if (trained->began) {
    log_line(trained->left ? "left; the others continue" : "stopped; the checkpoint is written");
  }
  // None has come where it was another worker that was told to stop.
  return kSignalled + (signal_received != 0 ? signal_received.load() : SIGTERM);
}

// One process for each GPU of this worker.
Result<int> train_on_several(const Assignment& assignment, char** argv) {
  FETTLE_ASSIGN(const Meeting alone, meet_on_loopback());
  FETTLE_ASSIGN(const auto ranks, rank_variables(std::getenv, assignment.gpus, alone));
  return run_ranks(ranks, argv, log_line);
}

int train_here(const Arguments& arguments, char** argv) {
  const auto assignment = read_assignment(arguments.file, arguments.by_hand);
  if (!assignment.ok()) return fail(assignment.error());
  if (assignment->gpus > 1 && !is_rank_of_worker(std::getenv)) {
    const auto code = train_on_several(*assignment, argv);
    return code.ok() ? *code : fail(code.error());
  }
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
  return exit_code(train(arguments, *assignment));
}

int run(int argc, char** argv) {
  const Result<Arguments> arguments = read_arguments(argc, argv);
  if (!arguments.ok()) return fail(arguments.error());
  if (arguments->help) return std::fputs(kUsage.data(), stdout) < 0 ? kFailed : 0;
  if (arguments->version) {
    print_line("fettle-trainer " FETTLE_VERSION);
    return 0;
  }
  if (arguments->backends) return print_backends();
  if (arguments->tune_kernels) return exit_code(tune_and_keep(*arguments));
  if (!arguments->launch.kernel.empty()) return exit_code(time_one_kernel(*arguments));
  if (arguments->benches) {
    const auto line = run_bench(arguments->bench);
    if (!line.ok()) return fail(line.error());
    print_line(*line);
    return 0;
  }
  if (arguments->file.empty()) {
    return fail(invalid("no trial: set FETTLE_TRIAL or name a file; see fettle-trainer --help"));
  }
  if (arguments->dry_run) return run_dry(*arguments);
  return train_here(*arguments, argv);
}

}  // namespace
}  // namespace fettle::trainer

int main(int argc, char** argv) {
  try {
    return fettle::trainer::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs(
        "fettle-trainer: out of memory; a smaller training.maxPerWorker or model needs less\n",
        stderr);
    return fettle::trainer::kFailed;
  }
}
