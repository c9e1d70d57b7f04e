// TrainingStart: brings a training to where it starts: the newest checkpoint, a parent's, rank 0's
// memory, a file's weights or initial values. And the snapshot that the next training starts from.
//
// All workers call it together; rank 0 alone reads checkpoints, and sends its start to the others.
// One thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/model/parameters.h"
#include "trainer/training_parts.h"

namespace fettle::trainer {

// Errors: a worker reads other data than rank 0.
Status agree_on_data(const api::DataConfig& config, const TrainingData& data,
                     Collective& collective);

// The state to resume from, at rank 0; elsewhere empty. With a sharded optimiser all workers call
// it, and it fails if one is lost.
Result<Checkpoint> take_snapshot(const TrainingParts& parts, const TrainingState& state);

class TrainingStart {
 public:
  explicit TrainingStart(const TrainingParts& parts) : parts_(parts) {}

  // Restores weights, the optimiser's state, position and scores. `from`: where rank 0 starts, in
  // its memory; absent: from its newest checkpoint, else from the parent's. Errors: a checkpoint of
  // another model or another configuration; only damaged checkpoints; a worker was lost.
  Result<TrainingState> restore(const std::optional<Checkpoint>& from);

  // This trial's newest checkpoint, at rank 0; "": another start.
  const std::string& resumed_from() const { return resumed_from_; }

 private:
  // nullopt: the initial values of its seed.
  using Start = Result<std::optional<Checkpoint>>;
  Start from_disk();
  Start from_parent();
  Start from_file();
  Result<Checkpoint> await_parent() const;
  Checkpoint from_seed() const;
  Checkpoint beginning_with(InitialValues values) const;
  // Sends rank 0's start, or its error, to the others.
  Result<TrainingState> share(Start start);
  Status refuse_another_training(const Checkpoint& checkpoint, const std::string& from) const;
  // `parents`: the checkpoint is from a population, whose members may normalise differently.
  Status refuse_other_data(const Checkpoint& checkpoint, const std::string& from,
                           bool parents = false) const;
  Status refuse_another_model(const Checkpoint& checkpoint, const std::string& from) const;
  Result<TrainingState> adopt(const Checkpoint& checkpoint);

  const TrainingParts parts_;
  std::string resumed_from_;
};

}  // namespace fettle::trainer
