#include "trainer/program/dry_run.h"

#include <algorithm>

#include "api/fields/enum_names.h"
#include "api/trainer/trainer_config.h"
#include "base/machine/units.h"
#include "trainer/step/precision.h"

namespace fettle::trainer {

namespace {

// "  gradient slots    1.25 MiB".
std::string row(std::string name, const std::string& value) {
  constexpr std::size_t kColumn = 22;
  std::replace(name.begin(), name.end(), '_', ' ');
  name.resize(std::max(kColumn, name.size() + 1), ' ');
  return "  " + name + value + "\n";
}

std::string bytes(std::int64_t count) { return machine::bytes_text(static_cast<double>(count)); }

std::string describe_step(const DryRun& run) {
  const Dealing& dealing = run.step.dealing;
  return "a batch of " + std::to_string(run.step.global_batch) + " over " +
         std::to_string(dealing.world_size) + (dealing.world_size == 1 ? " worker" : " workers") +
         ", " + std::to_string(run.step.accumulation) + " times at most " +
         std::to_string(dealing.limit) + " samples each";
}

// Rows of the parts in the backend's memory, or of those on the host beside it.
std::string rows_of_parts(const MemoryPlan& memory, bool of_backend) {
  std::string text;
  for (const MemoryPart& part : memory.parts) {
    if (memory.is_of_backend(part) != of_backend) continue;
    text += row(std::string(part.name), bytes(memory.bytes_of(part)));
  }
  return text + row("total", bytes(of_backend ? memory.total() : memory.host_total()));
}

std::string describe_memory(const DryRun& run) {
  const MemoryPlan& memory = run.memory;
  std::string text = "\nMemory of a worker" + std::string(memory.has_device() ? "'s GPU" : "") +
                     ", at least:\n" + rows_of_parts(memory, /*of_backend=*/true);
  if (run.usable()) {
    text += row("there is", bytes(*run.usable()));
    text += row("samples that fit it", run.samples_fitting ? std::to_string(*run.samples_fitting)
                                                           : "none: the model is too large");
  } else {
    text += row("there is", "not known: the GPU is not here");
  }
  if (memory.has_device() && !memory.has_workspaces()) {
    text += row("workspaces", "not known: the GPU is not here");
  }
  if (memory.has_device()) {
    text += "\nMemory of its host, at least:\n" + rows_of_parts(memory, /*of_backend=*/false) +
            row("there is", bytes(run.available.host));
  }
  return text + "\nData: " + std::string(to_string(memory.data)) +
         (run.usable() ? "" : ", where they fit beside the rest") + "\n";
}

}  // namespace

DryRun plan_run(const api::TrainerConfig& config, const NetworkPlan& plan,
                const TrainingWorld& world, const AvailableMemory& available,
                const Workspaces& workspaces) {
  DryRun run;
  run.training = config.training;
  run.training.precision = precision_on(available.has_device, config.training.precision);
  run.parameters = plan.trained();
  run.world = world;
  run.step = plan_step(config, world);
  const DataPlace place = place_data(config, plan, world, available, workspaces);
  run.memory = plan_memory(config, plan, world, place, workspaces);
  run.flops = plan.training_flops() * static_cast<double>(run.step.samples());
  run.available = available;
  if (run.usable()) run.samples_fitting = run.memory.samples_fitting(*run.usable());
  return run;
}

std::string to_text(const DryRun& run) {
  std::string text = std::to_string(run.parameters) + " parameters, " +
                     std::string(api::to_string(run.training.precision)) + ", " +
                     std::string(api::to_string(run.training.optimizer)) + ", " +
                     describe_step(run) + "\n" + describe_memory(run);
  text += "\nAn optimiser step of a worker, at least:\n";
  text += row("operations", machine::flops_text(run.flops));
  text += "\nDisk:\n" + row("a checkpoint", bytes(run.memory.checkpoint_file));
  return text;
}

Json to_json(const DryRun& run) {
  Json memory = Json::object();
  for (const MemoryPart& part : run.memory.parts) memory.set(part.name, run.memory.bytes_of(part));
  memory.set("total", run.memory.total());
  if (run.usable()) memory.set("usable", *run.usable());
  if (run.samples_fitting) memory.set("samples_fitting", *run.samples_fitting);
  if (run.memory.has_device()) {
    memory.set("host_total", run.memory.host_total());
    memory.set("host_usable", run.available.host);
  }
  Json step = Json::object({{"global_batch", run.step.global_batch},
                            {"world_size", run.step.dealing.world_size},
                            {"samples_at_once", run.step.dealing.limit},
                            {"accumulation", run.step.accumulation},
                            {"train_samples", run.world.train_samples},
                            {"flops", run.flops}});
  return Json::object({{"parameters", run.parameters},
                       {"precision", api::to_string(run.training.precision)},
                       {"backend", api::to_string(run.training.backend)},
                       {"threads", run.training.threads},
                       {"data", to_string(run.memory.data)},
                       {"memory", std::move(memory)},
                       {"step", std::move(step)},
                       {"checkpoint_bytes", run.memory.checkpoint_file}});
}

}  // namespace fettle::trainer
