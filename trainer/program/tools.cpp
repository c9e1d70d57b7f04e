#include "trainer/program/tools.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/trainer/trainer_config.h"
#include "base/json.h"
#include "trainer/files/teacher.h"
#include "trainer/int8_metrics.h"
#include "trainer/norm_samples.h"
#include "trainer/program/console.h"
#include "trainer/program/dry_run.h"
#include "trainer/program/process_task.h"
#include "trainer/prune/pruning.h"
#include "trainer/step/precision.h"
#include "trainer/step/training_device.h"

namespace fettle::trainer {
namespace {

Result<DryRun> plan_without_training(const Arguments& arguments) {
  FETTLE_ASSIGN(const ProcessTask process, read_process_task(arguments.file, arguments.overrides));
  DataCache cache = DataCache::from_environment();
  FETTLE_ASSIGN(const TrainingData data, load_training_data(process.task.config.data, cache));
  FETTLE_ASSIGN(const std::optional<Teacher> teacher, read_teacher(process.task.config, data));
  const api::TrainerConfig& config = process.task.config;
  FETTLE_ASSIGN(const NetworkPlan plan, plan_network(config, data.format()));
  // Each GPU of a worker is a rank of its own.
  const std::int64_t of_trial = process.trial ? process.trial->workers : 1;
  TrainingWorld world =
      world_of(data, std::max<std::int64_t>(arguments.workers.value_or(of_trial), 1) * process.gpus,
               !process.task.checkpoints.empty());
  if (teacher) world.teacher = memory_of_teacher(teacher->plan, config.training.precision);
  FETTLE_TRY(check_norm_samples(config, plan, world));
  FETTLE_ASSIGN(world.int8_network, int8_network_bytes(config, data.format(), world));
  if (config.training.prune) {  // only the layers matter here
    FETTLE_TRY(Pruning::create(*config.training.prune, plan, /*steps=*/1));
  }
  auto backend = open_backend(config.training);
  if (!backend.ok()) {  // a plan needs no GPU: it lacks workspaces and free memory
    return plan_run(config, plan, world, available_memory(config.training, process.gpus));
  }
  TrainingDevice device(std::move(backend).value());
  const kernels::PlanOptions options =
      plan_options(device.backend(), config.training, plan_step(config, world).dealing.limit);
  FETTLE_ASSIGN(const Workspaces workspaces,
                workspaces_of(device, plan, teacher ? &teacher->plan : nullptr, options));
  return plan_run(config, plan, world, available_memory(device.backend(), process.gpus),
                  workspaces);
}

}  // namespace

int dry_run(const Arguments& arguments) {
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

int bench(const Arguments& arguments) {
  const auto line = run_bench(arguments.bench);
  if (!line.ok()) return fail(line.error());
  print_line(*line);
  return 0;
}

}  // namespace fettle::trainer
