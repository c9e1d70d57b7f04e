#include "trainer/program/slot.h"

#include <malloc.h>

#include <chrono>
#include <csignal>
#include <new>
#include <optional>
#include <utility>

#include "trainer/program/console.h"
#include "trainer/reporter/training_report.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

constexpr std::size_t kKeptData = 2;
// A slot that waits longer leaves the memory of its device to the others.
constexpr auto kKeepsDevice = std::chrono::seconds(1);

// A sentence for a trial that is not for a slot; "": it is.
std::string why_not_here(const ProcessTask& process) {
  const auto& trial = process.trial;
  const bool several = process.gpus > 1 || (trial && trial->workers > 1);
  if (several) return "a worker trains on one GPU at most, in one process";
  if (trial && trial->least_workers) return "workers may join this trial, which needs a process";
  return "";
}

}  // namespace

SharedBySlots::SharedBySlots(WorkerFrames& its_frames, Assignments& its_assignments,
                             std::int64_t its_slots)
    : frames(its_frames),
      assignments(its_assignments),
      slots(its_slots),
      data([] { return DataCache::from_environment(); }, kKeptData),
      devices(0) {}

void Slot::run() {
  Assignment assignment;
  for (;;) {
    const Assignments::Next next = this->next(assignment);
    if (next == Assignments::Next::kNoMore) return;
    if (next == Assignments::Next::kNoneYet) continue;
    train_one(assignment);
    ::malloc_trim(0);
  }
}

// Several slots share the memory of a device: one that waits gives its part back.
Assignments::Next Slot::next(Assignment& assignment) {
  const bool gives_back = !is_alone() && device_ && !device_->backend().shares_memory();
  if (!gives_back) return shared_.assignments.next(assignment);
  const Assignments::Next next = shared_.assignments.next(assignment, kKeepsDevice);
  if (next == Assignments::Next::kNoneYet) close_device();
  return next;
}

void Slot::train_one(const Assignment& assignment) {
  run_ = assignment.run;
  began_ = false;
  const std::optional<int> code = train_or_refuse(assignment, host_of(assignment));
  shared_.assignments.forget(run_);
  if (!code) return;
  begin();
  shared_.frames.say("end " + run_ + " " + std::to_string(*code));
}

std::optional<int> Slot::train_or_refuse(const Assignment& assignment, const TrialHost& host) {
  const auto refuse = [&](const std::string& reason) {
    shared_.frames.say("refuse " + run_ + " " + reason);
    return std::nullopt;
  };
  if (host.is_stopped()) return kSignalled + SIGTERM;
  Result<TrainingResult> trained = TrainingResult{};
  try {
    const std::string file = assignment.variable("FETTLE_TRIAL");
    if (file.empty()) return refuse("its environment has no FETTLE_TRIAL");
    const auto process = read_process_task(file, {});
    if (process.ok()) {
      const std::string reason = why_not_here(*process);
      if (!reason.empty()) return refuse(reason);
    }
    if (is_alone()) begin();
    trained = process.ok() ? of_this_process(train(*process, host)) : process.error();
  } catch (const std::bad_alloc&) {
    trained = io_error("out of memory; a smaller training.maxPerWorker or model needs less");
  }
  if (!began_ && !trained.ok() && others_have_the_memory(trained.error())) {
    return refuse(trained.error().message);
  }
  const int code = exit_code_of(trained, host, SIGTERM);
  if (code == kFailed) close_device();  // the next trial begins with another one
  return code;
}

// The runner may try again elsewhere.
bool Slot::others_have_the_memory(const Error& error) const {
  const bool lacks = error.message.find(api::kGpuMemoryShort) != std::string::npos;
  const std::int64_t mine = device_ ? 1 : 0;
  return lacks && shared_.devices > mine;
}

Result<TrainingResult> Slot::train(const ProcessTask& process, const TrialHost& host) {
  TrainingTask task = process.task;
  task.shares_process = !is_alone();
  FETTLE_ASSIGN(Reporting reporting, open_reporting(process, host));
  FETTLE_TRY(claim_checkpoints(process, host, task));
  FETTLE_ASSIGN(const auto data, shared_.data.load(task.config.data));
  TrainingHooks hooks = make_hooks(reporting, host, /*trace=*/nullptr);
  hooks.allocating = &shared_.allocating;
  FETTLE_TRY(open_device(task.config.training));
  SingleProcess collective;
  FETTLE_ASSIGN(const auto training, Training::create_on(*device_, task, *data, collective, hooks));
  begin();
  FETTLE_ASSIGN(const Ending ending, training->run());
  if (shared_.frames.lost_a_line()) {
    return io_error("reports are lost, since standard output could not be written");
  }
  return TrainingResult{ending, /*left=*/false};
}

TrialHost Slot::host_of(const Assignment& assignment) const {
  TrialHost host;
  const std::string& run = assignment.run;
  if (is_alone()) {
    host.print = [this](const std::string& line) { shared_.frames.print(line); };
    host.log = log_line;
  } else {
    host.print = [this, run](const std::string& line) {
      shared_.frames.say("line " + run + " " + line);
    };
    host.longest_line = shared_.frames.room_for("line " + run + " ");
    host.log = [run](const std::string& line) { log_line(run + ": " + line); };
  }
  host.is_stopped = [this, run] { return shared_.assignments.is_stopped(run); };
  host.stop = [] {};  // no report sink asks for it: reports go to standard output
  host.pod = assignment.variable("FETTLE_POD_UID");
  host.tensorboard = assignment.variable("FETTLE_TENSORBOARD");
  return host;
}

// Says once that the run begins. With several slots that is only when it has its memory, so that it
// can be refused until then.
void Slot::begin() {
  if (std::exchange(began_, true)) return;
  shared_.frames.say("begin " + run_);
  if (is_alone()) reset_peak_memory();
}

// A backend has its number of threads for life, and a CPU backend has it on the thread that opened
// it: this one.
Status Slot::open_device(const api::TrainingConfig& config) {
  const Key key{config.backend, config.threads, config.precision == api::Precision::kFp16};
  if (device_ && key == key_) return success();
  close_device();
  FETTLE_ASSIGN(device_, TrainingDevice::open(config));
  key_ = key;
  if (!device_->backend().shares_memory()) ++shared_.devices;
  return success();
}

void Slot::close_device() {
  if (device_ && !device_->backend().shares_memory()) --shared_.devices;
  device_.reset();
}

}  // namespace fettle::trainer
