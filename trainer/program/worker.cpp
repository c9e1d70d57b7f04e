#include "trainer/program/worker.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "trainer/data/data_shelf.h"
#include "trainer/program/assignments.h"
#include "trainer/program/console.h"
#include "trainer/program/process_task.h"
#include "trainer/program/trial_run.h"
#include "trainer/program/worker_frames.h"
#include "trainer/reporter/training_report.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

constexpr std::int64_t kProtocol = 1;  // the version that we speak
constexpr std::int64_t kMostSlots = 64;
constexpr std::size_t kKeptData = 2;
constexpr const char* kVariables[] = {"FETTLE_WORKER_FD", "FETTLE_WORKER_NONCE",
                                      "FETTLE_WORKER_VERSION", "FETTLE_WORKER_SLOTS"};

Assignments* signalled = nullptr;  // of the only worker in this process

void on_signal(int /*number*/) { signalled->stop_all(); }

// Shared by all slots.
struct Worker {
  WorkerFrames frames;
  DataShelf data;
  Assignments assignments;
  std::int64_t slots = 1;
  // Held while a training is prepared: each asks a GPU for its free memory, and then takes it.
  std::mutex preparing;
  std::atomic<int> busy = 0;  // slots that train
};

bool lacks_gpu_memory(const Error& error) {
  return error.message.find(api::kGpuMemoryShort) != std::string::npos;
}

// One thread that trains one trial after another, on a device of its own.
class Slot {
 public:
  explicit Slot(Worker& worker) : worker_(worker) {}

  void run() {
    while (const std::optional<Assignment> assignment = worker_.assignments.next()) {
      train(*assignment);
      worker_.assignments.forget(assignment->run);
      ::malloc_trim(0);
    }
  }

 private:
  bool is_alone() const { return worker_.slots == 1; }

  void log(const std::string& run, const std::string& line) const {
    log_line(is_alone() ? line : run + ": " + line);
  }

  TrialHost host_of(const Assignment& assignment) const {
    const std::string& run = assignment.run;
    return {.print =
                [this, run](const std::string& line) {
                  if (is_alone()) return worker_.frames.print(line);
                  worker_.frames.say("line " + run + " " + line);
                },
            .log = [this, run](const std::string& line) { log(run, line); },
            .is_stopped = [this, run] { return worker_.assignments.is_stopped(run); },
            .stop = [] {},  // no report sink asks for it: reports go to standard output
            .pod = assignment.variable("FETTLE_POD_UID"),
            .tensorboard = assignment.variable("FETTLE_TENSORBOARD")};
  }

  void train(const Assignment& assignment) {
    const auto process = read_process_task(assignment.variable("FETTLE_TRIAL"), {});
    const bool several = process.ok() && (process->gpus > 1 || process->task.processes_here > 1 ||
                                          (process->trial && process->trial->workers > 1));
    if (several) {
      return worker_.frames.say("refuse " + assignment.run +
                                " a worker trains on one GPU at most, in one process");
    }
    begin_ = [this, run = assignment.run] { worker_.frames.say("begin " + run); };
    if (is_alone()) begin();
    if (is_alone()) reset_peak_memory();
    const TrialHost host = host_of(assignment);
    const int others = worker_.busy++;
    Result<TrainingResult> trained =
        process.ok() ? train_or_fail(*process, host) : Result<TrainingResult>(process.error());
    --worker_.busy;
    // Trials in other slots have the memory now; the runner tries again elsewhere.
    if (begin_ && others > 0 && !trained.ok() && lacks_gpu_memory(trained.error())) {
      return worker_.frames.say("refuse " + assignment.run + " " + trained.error().message);
    }
    begin();
    const int code = exit_code_of(trained, host, SIGTERM);
    // The device of a training that failed may be damaged, and so may this process: another
    // process trains the next trial.
    if (code == kFailed) worker_.assignments.finish();
    worker_.frames.say("end " + assignment.run + " " + std::to_string(code));
  }

  // Says that the run begins, once. With several slots that is only after its preparation, so that
  // it can be refused.
  void begin() {
    if (begin_) std::exchange(begin_, nullptr)();
  }

  Result<TrainingResult> train_or_fail(const ProcessTask& process, const TrialHost& host) {
    try {
      return of_this_process(train(process, host));
    } catch (const std::bad_alloc&) {
      device_.reset();
      return io_error("out of memory; a smaller training.maxPerWorker or model needs less");
    }
  }

  Result<TrainingResult> train(const ProcessTask& process, const TrialHost& host) {
    TrainingTask task = process.task;
    FETTLE_ASSIGN(Reporting reporting, open_reporting(process, host));
    FETTLE_TRY(claim_checkpoints(process, host, task));
    FETTLE_ASSIGN(const auto data, worker_.data.load(task.config.data));
    const TrainingHooks hooks = make_hooks(reporting, host, /*trace=*/nullptr);
    SingleProcess collective;
    std::unique_ptr<Training> training;
    {
      const std::lock_guard<std::mutex> guard(worker_.preparing);
      FETTLE_TRY(open_device(task.config.training));
      FETTLE_ASSIGN(training, Training::create_on(*device_, task, *data, collective, hooks));
    }
    begin();
    FETTLE_ASSIGN(const Ending ending, training->run());
    if (worker_.frames.lost_a_line()) {
      return io_error("reports are lost, since standard output could not be written");
    }
    return TrainingResult{ending, /*left=*/false};
  }

  // A backend has its number of threads for life, and CPU backends have it for the thread that
  // opened them.
  Status open_device(const api::TrainingConfig& config) {
    const Key key{config.backend, config.threads, config.precision == api::Precision::kFp16};
    if (device_ && key == key_) return success();
    device_.reset();
    FETTLE_ASSIGN(device_, TrainingDevice::open(config));
    key_ = key;
    return success();
  }

  // The settings that choose a backend: fp16 on a CPU takes another one.
  struct Key {
    api::BackendKind backend = api::BackendKind::kAuto;
    std::int64_t threads = 1;
    bool is_fp16 = false;
    bool operator==(const Key&) const = default;
  };

  Worker& worker_;
  std::function<void()> begin_;
  std::unique_ptr<TrainingDevice> device_;
  Key key_;
};

std::optional<std::int64_t> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  return is_whole && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

int run_worker(std::optional<std::int64_t> slots) {
  const auto fd = number_of(std::getenv("FETTLE_WORKER_FD"));
  const char* const given = std::getenv("FETTLE_WORKER_NONCE");
  const auto version = number_of(std::getenv("FETTLE_WORKER_VERSION"));
  const auto wanted = number_of(std::getenv("FETTLE_WORKER_SLOTS"));
  if (!fd || given == nullptr) {
    return fail(invalid(
        "--worker: FETTLE_WORKER_FD and FETTLE_WORKER_NONCE are not set: fettle run starts workers "
        "(docs/worker-protocol.md); without --worker this program trains one trial"));
  }
  if (version.value_or(kProtocol) < kProtocol) {
    return fail(invalid("--worker: the runner speaks an older worker protocol"));
  }
  const std::string nonce = given;
  for (const char* name : kVariables) ::unsetenv(name);
  Worker worker{
      .frames = WorkerFrames(STDOUT_FILENO, nonce),
      .data = DataShelf(DataCache::from_environment(), kKeptData),
      .assignments = {},
      .slots = std::clamp<std::int64_t>(slots.value_or(wanted.value_or(1)), 1, kMostSlots),
      .preparing = {},
      .busy = 0};
  if (const Status started = worker.assignments.start(static_cast<int>(*fd)); !started.ok()) {
    return fail(started.error());
  }
  signalled = &worker.assignments;
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
  explain_bus_errors();
  worker.frames.say("ready " + std::to_string(kProtocol) + " " + std::to_string(worker.slots));
  std::vector<std::thread> threads;
  for (std::int64_t i = 1; i < worker.slots; ++i) {
    auto thread = start_thread([&worker] { Slot(worker).run(); });
    if (thread.ok()) threads.push_back(std::move(*thread));  // else it has fewer slots
  }
  Slot(worker).run();
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace fettle::trainer
