// TrainingTask: one trial's training as the trial describes it; TrainingHooks: its callbacks. Plain
// values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "api/trainer/trainer_config.h"
#include "api/trial/trial_file.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/checkpoint/identity.h"
#include "trainer/reporter/training_report.h"
#include "trainer/trace/trace.h"

namespace fettle::trainer {

struct TrainingTask {
  api::TrainerConfig config;  // defaults need not be filled in
  std::uint64_t seed = 0;
  FileHashes files;              // Training::create fills them in
  std::int64_t until_epoch = 1;  // stops there; the schedule is always training.epochs long
  std::string checkpoints;       // directory; "" = none are written
  CheckpointsKept keep;
  // An epoch that ends sooner after the last checkpoint leaves none, unless something needs it
  // (training_reports.h). 0: each epoch leaves one.
  std::chrono::milliseconds between_checkpoints = std::chrono::seconds(2);
  std::optional<CheckpointFence> fence;    // rank 0's claim to that directory; absent: not shared
  std::optional<api::ParentPlace> parent;  // a new trial takes its weights from it
  std::int64_t processes_here = 1;         // of this worker, which share the host's memory
  // Limit on the wait for a parent's checkpoint to appear: network file systems cache directories.
  std::chrono::milliseconds parent_patience = std::chrono::minutes(1);
  // Other trainings run in this process meanwhile: memory in use cannot be told apart.
  bool shares_process = false;
  bool new_process = true;  // reports its start again: an earlier process may not have
};

// Callbacks of a training, called from its thread.
struct TrainingHooks {
  std::function<void(const EpochReport&)> report;
  std::function<void(const std::string&)> log;  // a line for people
  // Called at rank 0 at the start, with the number of whole epochs done; may be empty.
  std::function<void(std::int64_t)> begin;
  // Called in every optimiser step, near its end.
  std::function<bool()> should_stop;
  std::function<bool()> should_regroup;  // may be empty
  Trace* trace = nullptr;                // receives step times; may be null
  // Held from the look for free memory of a device until it is allocated: trainings on one device
  // take turns at it. May be null.
  std::mutex* allocating = nullptr;
  // Tells how old the newest checkpoint is; a test's own, or the steady clock.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

}  // namespace fettle::trainer
