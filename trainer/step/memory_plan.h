// MemoryPlan: memory that one worker of a training needs, known before anything is allocated.
//
// Includes all arrays that follow from the model, the optimiser and the batch, and on a GPU the
// workspaces of operations, which the backend determines without allocating. Excludes code and
// library-internal memory, so it is a lower bound: a plan that exceeds the memory cannot run.
// Data files are mapped, shared by all workers and released when memory is short; they count only
// if a GPU holds a copy of them.
// If the backend has memory of its own (a GPU), the plan is about that memory; memory on the host
// beside it is counted separately.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "kernels/backend.h"
#include "trainer/data/batching.h"
#include "trainer/data/training_data.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Memory of distillation's teacher, on each worker: without a teacher nothing.
struct TeacherMemory {
  std::int64_t fixed = 0;       // parameters and statistics
  std::int64_t per_sample = 0;  // activations
};
TeacherMemory memory_of_teacher(const NetworkPlan& teacher, api::Precision precision);

// The workers that share a batch, and the samples available to fill it.
struct TrainingWorld {
  std::int64_t world_size = 1;
  std::int64_t train_samples = 0;
  std::int64_t data_bytes = 0;     // of the set that training and validation samples come from
  bool keeps_checkpoints = false;  // the planned worker does: rank 0, with a directory
  TeacherMemory teacher = {};
  std::int64_t int8_network = 0;  // bytes of training.quantize's network, or 0
};
TrainingWorld world_of(const TrainingData& data, std::int64_t world_size,
                       bool keeps_checkpoints = false);

// The place of the samples during training.
enum class DataPlace : std::uint8_t {
  kShared,    // on the host, whose memory the backend uses
  kStreamed,  // on the host; a batch is brought to the device while it works on the one before
  kHeld,      // on the device, all of them; the host names the samples of a batch
};
std::string_view to_string(DataPlace place);  // "on the device"

// Memory available to a training, in bytes.
struct AvailableMemory {
  std::int64_t host = 0;                    // usable by a process here
  bool has_device = false;                  // the backend's memory is its own
  std::optional<std::int64_t> device = {};  // free; absent: unknown
};

// Bytes of one purpose: a fixed number, and a number for each sample held at once.
struct MemoryPart {
  std::string_view name;  // "optimizer_state"
  std::int64_t fixed = 0;
  std::int64_t per_sample = 0;
  bool on_host = false;  // even if the backend has memory of its own
  // Known for the planned number of samples only: fewer samples need no more, more samples grow it
  // at most in proportion.
  bool is_workspace = false;
};

struct MemoryPlan {
  std::int64_t samples = 1;  // held at once
  std::vector<MemoryPart> parts;
  std::int64_t checkpoint_file = 0;  // bytes on disk of each checkpoint
  DataPlace data = DataPlace::kShared;

  bool has_workspaces() const;  // whether they are known
  bool has_device() const { return data != DataPlace::kShared; }
  bool is_of_backend(const MemoryPart& part) const { return !has_device() || !part.on_host; }

  std::int64_t bytes_of(const MemoryPart& part) const {
    return part.fixed + part.per_sample * samples;
  }
  std::int64_t total() const;       // in the backend's memory
  std::int64_t host_total() const;  // on the host beside it; 0 if the backend uses host memory
  // A number of samples held at once for which `bytes` of the backend's memory suffice: the
  // largest, except that workspaces may be overestimated. Absent: not even one sample fits.
  std::optional<std::int64_t> samples_fitting(std::int64_t bytes) const;
};

// Workspace of a network's operations for the samples of plan_step(). Absent: unknown because the
// GPU is not here, or not determined because the backend uses host memory.
using Workspaces = std::optional<kernels::Workspace>;

// Defaults need not be filled in.
StepShape plan_step(const api::TrainerConfig& config, const TrainingWorld& world);
MemoryPlan plan_memory(const api::TrainerConfig& config, const NetworkPlan& plan,
                       const TrainingWorld& world, DataPlace data = DataPlace::kShared,
                       const Workspaces& workspaces = {});

// A device holds all samples if they fit beside the rest of the plan and leave an eighth of the
// free memory for allocations outside the plan (library workspaces). If the device's memory is
// unknown, they are assumed to fit.
DataPlace place_data(const api::TrainerConfig& config, const NetworkPlan& plan,
                     const TrainingWorld& world, const AvailableMemory& available,
                     const Workspaces& workspaces = {});

// kInvalid if one worker alone needs more than is available: names the shortfall and a remedy.
Status check_memory(const api::TrainerConfig& config, const MemoryPlan& plan,
                    const AvailableMemory& available);

}  // namespace fettle::trainer
