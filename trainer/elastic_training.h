// Elastic training: re-forms the group and continues whenever a worker is lost, leaves or joins.
//
// Rank and world size come from the environment, in the names that PyTorch's programs use: RANK,
// WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
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
  RendezvousRequest rendezvous;                 // the caller fills in trial and run
  std::chrono::milliseconds collective_time{};  // for one message; a slower worker hangs
};

// `open`: workers may join later. Absent if WORLD_SIZE is not set, or is 1 and no worker may join.
// Errors name the variable.
Result<std::optional<WorkerPlace>> place_of_worker(const Variable& variable, bool open);

struct TrainingResult {
  Ending ending = Ending::kReached;
  bool left = false;  // this worker stopped, and the others continue without it
  bool began = true;  // false: it stopped before all workers had joined
  bool saved = true;  // false: it stopped with only an older checkpoint saved
};

// Runs from the meeting to the end. Continues without lost workers while `least` are left, rank 0
// among them: from the last step that all made, out of its memory; with a sharded optimiser from
// the newest checkpoint, because a part of its state was lost. In an open world a worker that
// should stop leaves, if enough remain; rank 0 stops all.
// Errors: as Training, and kUnavailable: a worker did not come or was lost, and too few are left.
Result<TrainingResult> train_elastically(const TrainingTask& task, const TrainingData& data,
                                         const WorkerPlace& place, std::int64_t least,
                                         const TrainingHooks& hooks);

}  // namespace fettle::trainer
