// MemoryPlan: how much memory one worker of a training needs, known before anything is allocated.
//
// It has all arrays that follow from the model, the optimiser and the batch, and on a GPU the
// workspaces of operations, which the backend finds out without allocating any. Not the program,
// nor what libraries keep for themselves: so it is a lower bound, and what does not fit it cannot
// run.
// The files of the data are mapped, shared by all workers and given back when memory is short; they
// are not in it either, unless a GPU holds a copy of them.
// A backend with memory of its own (a GPU) is what the plan is about then; what lies on the host
// beside it is counted by itself.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/trainer_config.h"
#include "kernels/backend.h"
#include "trainer/data/batching.h"
#include "trainer/data/training_data.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Among whom a batch is shared, and how many samples there are at most to fill it.
struct TrainingWorld {
  std::int64_t world_size = 1;
  std::int64_t train_samples = 0;
  std::int64_t data_bytes = 0;     // of the set that training and validation samples are from
  bool keeps_checkpoints = false;  // the worker that is planned for does: rank 0, with a directory
};
TrainingWorld world_of(const TrainingData& data, std::int64_t world_size,
                       bool keeps_checkpoints = false);

// Where samples lie while they are trained on.
enum class DataPlace : std::uint8_t {
  kShared,    // on the host, whose memory the backend uses
  kStreamed,  // on the host; a batch is brought to the device while it works on the one before
  kHeld,      // on the device, all of them; the host names those of a batch
};
std::string_view to_string(DataPlace place);  // "on the device"

// What there is for a training, in bytes.
struct MemoryThere {
  std::int64_t host = 0;                    // a process may use here
  bool has_device = false;                  // the backend's memory is its own
  std::optional<std::int64_t> device = {};  // free of it; absent: not known here
};

// How an optimiser step is cut into micro-batches, as the busiest worker sees it.
struct StepShape {
  std::int64_t global_batch = 0;  // no more than there are samples
  Dealing dealing;                // rank 0; limit: most samples that are held at once
  std::int64_t accumulation = 1;  // micro-batches a step
  std::int64_t samples() const;   // of this worker a step
};

// Bytes of one purpose: a fixed number, and a number for each sample held at once.
struct MemoryPart {
  std::string_view name;  // "optimizer_state"
  std::int64_t fixed = 0;
  std::int64_t per_sample = 0;
  bool on_host = false;  // even where the backend has memory of its own
  // Known for the planned number of samples only: with fewer it is no more, with more it grows at
  // most in proportion.
  bool is_workspace = false;
};

struct MemoryPlan {
  std::int64_t samples = 1;  // held at once
  std::vector<MemoryPart> parts;
  std::int64_t checkpoint_file = 0;  // bytes on disk, of each that is kept
  DataPlace data = DataPlace::kShared;

  bool has_workspaces() const;  // they are known
  bool has_device() const { return data != DataPlace::kShared; }
  bool is_of_backend(const MemoryPart& part) const { return !has_device() || !part.on_host; }

  std::int64_t bytes_of(const MemoryPart& part) const {
    return part.fixed + part.per_sample * samples;
  }
  std::int64_t total() const;       // of the backend's memory
  std::int64_t host_total() const;  // of the host's beside it; 0 where that is the backend's
  // A number of samples held at once with which `bytes` of the backend's memory are enough: the
  // largest, but for workspaces, of which it counts no less than there will be. Absent: not even
  // one.
  std::optional<std::int64_t> samples_fitting(std::int64_t bytes) const;
};

// Of the operations of a network, for the samples of plan_step(). Absent: not known, because the
// GPU is not here, or not asked for, because memory is the host's.
using Workspaces = std::optional<kernels::Workspace>;

// Defaults need not be filled in.
StepShape plan_step(const api::TrainerConfig& config, const TrainingWorld& world);
MemoryPlan plan_memory(const api::TrainerConfig& config, const NetworkPlan& plan,
                       const TrainingWorld& world, DataPlace data = DataPlace::kShared,
                       const Workspaces& workspaces = {});

// A device holds all samples if they fit it beside all that the training plans for, and an eighth
// of what is free now is left over: for what is not planned, as that which libraries keep. Where
// its memory is not known they are taken to fit.
DataPlace place_data(const api::TrainerConfig& config, const NetworkPlan& plan,
                     const TrainingWorld& world, const MemoryThere& there,
                     const Workspaces& workspaces = {});

// kInvalid where one worker alone needs more than there is: how much is lacking, and the way out.
Status check_memory(const api::TrainerConfig& config, const MemoryPlan& plan,
                    const MemoryThere& there);

}  // namespace fettle::trainer
