// DryRun: the needs of a training, found without training: memory, figures of a step, checkpoints.
// A table for people, JSON for programs.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "trainer/step/memory_plan.h"

namespace fettle::trainer {

struct DryRun {
  api::TrainingConfig training;
  std::int64_t parameters = 0;
  TrainingWorld world;
  StepShape step;
  MemoryPlan memory;
  double flops = 0;  // of an optimiser step of one worker, by the formulas of the layers
  AvailableMemory available;
  std::optional<std::int64_t> samples_fitting;  // the largest maxPerWorker that fits `available`
  // Available memory of the kind that the plan counts; absent: the plan is for a device that is not
  // here.
  std::optional<std::int64_t> usable() const {
    return memory.has_device() ? available.device : available.host;
  }
};

DryRun plan_run(const api::TrainerConfig& config, const NetworkPlan& plan,
                const TrainingWorld& world, const AvailableMemory& available,
                const Workspaces& workspaces = {});

std::string to_text(const DryRun& run);
Json to_json(const DryRun& run);

}  // namespace fettle::trainer
