// DryRun: what a training would need, without training: its memory, its step in figures, its
// checkpoints. As a table for people and as JSON for programs (`fettle doctor` reads it).
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "trainer/memory_plan.h"
#include "trainer/step_work.h"

namespace fettle::trainer {

struct DryRun {
  api::TrainingConfig training;
  std::int64_t parameters = 0;
  TrainingWorld world;
  StepShape step;
  MemoryPlan memory;
  StepWork work;
  MemoryThere there;
  std::optional<std::int64_t> samples_fitting;  // the largest maxPerWorker that fits it
  // What there is of the memory that the plan is about; absent: it is a device's that is not here.
  std::optional<std::int64_t> usable() const {
    return memory.has_device() ? there.device : there.host;
  }
};

DryRun plan_run(const api::TrainerConfig& config, const NetworkPlan& plan,
                const TrainingWorld& world, const MemoryThere& there,
                const Workspaces& workspaces = {});

std::string to_text(const DryRun& run);
Json to_json(const DryRun& run);

}  // namespace fettle::trainer
