// MemoryPlan: how much memory one worker of a training needs, known before anything is allocated.
//
// It has all arrays that follow from the model, the optimiser and the batch. Not the workspaces of
// operations, which a backend plans for itself, nor the program: so it is a lower bound, and what
// does not fit it cannot run. The files of the data are mapped, shared by all workers and given
// back when memory is short; they are not in it either.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/trainer_config.h"
#include "trainer/batching.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Among whom a batch is shared, and how many samples there are at most to fill it.
struct TrainingWorld {
  std::int64_t world_size = 1;
  std::int64_t train_samples = 0;
};

// How an optimiser step is cut into micro-batches, as the busiest worker sees it.
struct StepShape {
  std::int64_t global_batch = 0;  // no more than there are samples
  Dealing dealing;                // rank 0; limit: most samples that are held at once
  std::int64_t accumulation = 1;  // micro-batches a step
  std::int64_t samples() const;   // of this worker a step
};

// Bytes of one purpose: a fixed number, and so many for each sample held at once.
struct MemoryPart {
  std::string_view name;  // "optimizer_state"
  std::int64_t fixed = 0;
  std::int64_t per_sample = 0;
};

struct MemoryPlan {
  std::int64_t samples = 1;  // held at once
  std::vector<MemoryPart> parts;
  std::int64_t checkpoint_file = 0;  // bytes on disk, of each that is kept

  std::int64_t bytes_of(const MemoryPart& part) const {
    return part.fixed + part.per_sample * samples;
  }
  std::int64_t total() const;
  // The largest number of samples held at once with which `bytes` are enough; absent: not even one.
  std::optional<std::int64_t> samples_fitting(std::int64_t bytes) const;
};

// Defaults need not be filled in.
StepShape plan_step(const api::TrainerConfig& config, const TrainingWorld& world);
MemoryPlan plan_memory(const api::TrainerConfig& config, const NetworkPlan& plan,
                       const TrainingWorld& world);

// kInvalid where one worker alone needs more than `bytes`: how much, and the way out.
Status check_memory(const api::TrainerConfig& config, const MemoryPlan& plan, std::int64_t bytes);

}  // namespace fettle::trainer
