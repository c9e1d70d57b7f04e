// TrainingParts: the objects that the classes of a training share; TrainingState: its progress.
// Plain values of one thread.
#pragma once

#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/data/training_data.h"
#include "trainer/parallel/collective.h"
#include "trainer/reporter/training_report.h"
#include "trainer/step/learner.h"
#include "trainer/trace/trace.h"
#include "trainer/training_task.h"

namespace fettle::trainer {

// All must outlive the classes that share them.
struct TrainingParts {
  const TrainingTask& task;  // defaults are filled in
  const TrainingData& data;
  Collective& collective;
  const TrainingHooks& hooks;
  Trace& trace;
  const CheckpointStore& store;
  Learner& learner;
};

struct TrainingState {
  Position position;
  EpochSums sums;                  // of the epoch under way
  Metrics scores;                  // loss and accuracies after the newest whole epoch
  std::vector<float> int8_ranges;  // of that epoch's 8-bit network; empty: none
};

}  // namespace fettle::trainer
