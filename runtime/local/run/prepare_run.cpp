#include "runtime/local/run/prepare_run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "api/study/resolve.h"
#include "api/trial/trial_file.h"
#include "base/file.h"
#include "base/machine/gpu_list.h"
#include "runtime/local/process/guard.h"
#include "runtime/local/process/outcome_file.h"
#include "runtime/local/run/workers.h"
#include "runtime/metric_lines.h"

namespace fettle::local {
namespace {

constexpr double kMaxGraceSeconds = 7 * 24 * 3600.0;

std::string list_of(std::vector<GpuName>::const_iterator from, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back((from + i)->cuda);
  return machine::join_gpus(names);
}

// An earlier Study of this name may have left an outcome and a log.
Status write_run_files(const RunRequest& request, const Layout& layout) {
  const std::string& name = request.trial.metadata.name;
  const std::string directory = layout.run_directory(name, request.run);
  const api::TrialFile& file = request.command.file;
  FETTLE_TRY(make_directories(directory));
  FETTLE_TRY(make_directories(file.checkpoints.directory));
  ::unlink(layout.outcome_file(name, request.run).c_str());
  ::unlink(layout.log_file(name, request.run).c_str());
  FETTLE_TRY(reserve_outcome(directory));
  return write_file(layout.trial_file(name, request.run),
                    api::write_trial_file(file).dump(2) + "\n");
}

SupervisorCommand command_of(const RunRequest& request, const Layout& layout,
                             const std::string& directory) {
  const api::TrialTemplate& trial = request.study.spec.trial;
  const RunCommand& what = request.command;
  SupervisorCommand command;
  command.kind = SupervisorCommand::Kind::kStart;
  command.trial = request.trial.metadata.name;
  command.run = request.run;
  command.pod_uid = pod_uid_of(request.trial, request.run);
  command.run_directory = layout.run_directory(command.trial, command.run);
  command.arguments = what.arguments;
  command.environment = what.environment;
  // An absolute workingDir stays unchanged.
  command.directory = what.directory.empty()
                          ? directory
                          : (std::filesystem::path(directory) / what.directory).string();
  command.memory_limit = what.memory_limit;
  const double grace = std::clamp(trial.grace_period, 0.0, kMaxGraceSeconds);
  command.grace_ms = std::llround(grace * 1000);
  command.pass_environment = trial.pass_environment;
  command.metrics = runtime::metric_options(request.study);
  command.worker_count = request.workers();
  command.open = what.file.least_workers.has_value();
  command.least_workers = what.file.least_workers.value_or(request.workers());  // absent: all
  return command;
}

// Gives whole GPUs to the workers that begin; later workers get theirs when they start.
Status give_gpus(const std::vector<GpuName>& gpus, std::int64_t each, bool by_pci,
                 SupervisorCommand& command) {
  const auto give = [&](const std::string& list, Variables& worker) {
    worker.emplace_back("CUDA_VISIBLE_DEVICES", list);
    if (by_pci) worker.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    // torchrun and similar launchers start a process on each, as fettle-trainer does.
    worker.emplace_back("PET_NPROC_PER_NODE", std::to_string(each));
  };
  if (command.workers.empty()) give(list_of(gpus.begin(), each), command.environment);
  auto next = gpus.begin();
  for (Variables& worker : command.workers) {
    // A worker that begins later has none yet: the guard reads the file below when it starts it.
    const bool has = gpus.end() - next >= each;
    give(has ? list_of(next, each) : "", worker);
    next += has ? each : 0;
  }
  return command.open ? write_gpus(command.run_directory, gpus, each) : success();
}

}  // namespace

Result<RunRequest> request_run(const api::Study& study, const api::Trial& trial, std::int64_t run,
                               const Layout& layout, const std::string& trainer) {
  FETTLE_ASSIGN(RunCommand command, make_command(study, trial, run, layout, trainer));
  command.file.workers = std::max<std::int64_t>(trial.spec.workers, 1);
  return RunRequest{study, trial, run, std::move(command)};
}

Result<SupervisorCommand> prepare_run(const RunRequest& request, const Layout& layout,
                                      const std::string& directory,
                                      const std::vector<GpuName>& gpus, bool by_pci) {
  SupervisorCommand command = command_of(request, layout, directory);
  const api::TrialTemplate& trial = request.study.spec.trial;
  const std::int64_t most =
      command.open ? std::max(command.worker_count, trial.workers.max) : command.worker_count;
  if (most > 1) {
    FETTLE_ASSIGN(command.workers, worker_variables(command.worker_count, most));
  }
  FETTLE_TRY(write_run_files(request, layout));
  if (!gpus.empty()) FETTLE_TRY(give_gpus(gpus, api::whole_gpus(trial), by_pci, command));
  return command;
}

Status write_gpus(const std::string& run_directory, const std::vector<GpuName>& gpus,
                  std::int64_t each) {
  std::string lines;  // one for each worker
  for (auto next = gpus.begin(); gpus.end() - next >= each; next += each) {
    lines += list_of(next, each) + "\n";
  }
  return write_file(gpus_file_in(run_directory), lines);
}

}  // namespace fettle::local
