// Trains with all workers of a trial; and again with those that are left when one is lost or
// leaves, and with those that have come.
//
// Who this worker is it learns from the environment, in the names that PyTorch's programs use:
// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/result.h"
#include "trainer/parallel/membership.h"
#include "trainer/parallel/variables.h"
#include "trainer/training.h"

namespace fettle::trainer {

struct WorkerPlace {
  RendezvousRequest rendezvous;                 // its trial and run are for the caller to fill in
  std::chrono::milliseconds collective_time{};  // for one message; a worker that takes longer hangs
};

// `open`: workers may come later. Absent where WORLD_SIZE is not set, or
// is 1 and no worker may come. Errors name the variable.
Result<std::optional<WorkerPlace>> place_of_worker(const Variable& variable, bool open);

struct Together {
  Ending ending = Ending::kReached;
  bool left = false;  // this worker was to stop, and the others continue without it
  bool began = true;  // false: it was to stop before all were there
  bool saved = true;  // false: it was stopped where the newest checkpoint is an older one
};

// From meeting the others to the end. Continues without those that are lost as long as `least` are
// left, rank 0 among them: from the last step that all made, out of its memory; with a sharded
// optimiser from the newest checkpoint, because a part of its state was lost. In an open world a
// worker that is to stop leaves, if enough are left without it; rank 0 stops all.
// Errors: as Training, and kUnavailable: a worker did not come or was lost, and too few are left.
Result<Together> train_together(const TrainingTask& task, const TrainingData& data,
                                const WorkerPlace& place, std::int64_t least,
                                const TrainingHooks& hooks);

}  // namespace fettle::trainer
