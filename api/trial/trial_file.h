// TrialFile: the file at FETTLE_TRIAL, with all that a process needs to run a trial.
//
// Constant within a run. Written by the runtime that starts the run; read by the built-in trainer
// and by any other program. A value type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/gpu/gpu_profile.h"
#include "api/study/study.h"
#include "api/trainer/trainer_config.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

struct ObjectiveName {
  std::string metric;
  Direction direction = Direction::kMinimize;
  bool operator==(const ObjectiveName&) const = default;
};

struct CheckpointPlace {
  std::string directory;  // of this trial
  std::int64_t keep = 2;
  // Further checkpoints to keep, the newest at rungs, if other trials may start from this one.
  std::optional<std::int64_t> keep_rungs;
  bool operator==(const CheckpointPlace&) const = default;
};

struct ParentPlace {
  std::string directory;  // of the parent trial's checkpoints
  std::int64_t step = 0;
  bool operator==(const ParentPlace&) const = default;
};

// The part of one card that a worker has.
struct GpuPart {
  double share = 1;                    // of the card; above 0
  std::optional<std::int64_t> memory;  // bytes; absent: not known
  GpuSharing sharing = GpuSharing::kWhole;
  GpuEnforcement enforces = GpuEnforcement::kNothing;
  bool operator==(const GpuPart&) const = default;
};

struct TrialFile {
  std::string study;
  std::string study_uid;
  std::string trial;
  std::int64_t index = 0;
  std::int64_t run = 0;
  std::int64_t seed = 0;
  Json parameters = Json::object();
  std::int64_t until_step = 1;
  std::int64_t workers = 1;
  // Fewest workers that can continue when others are lost; absent: all are needed.
  std::optional<std::int64_t> least_workers;
  std::optional<std::int64_t> gpus_per_worker;  // absent: one, a part of one, or none
  std::optional<GpuPart> gpu_part;              // absent: whole GPUs, or none
  Resource resource;
  std::vector<std::int64_t> rungs;  // steps that early stopping judges, ascending
  std::vector<ObjectiveName> objectives;
  std::int64_t parallelism = 1;  // trials of the Study that may run at once
  // Least seconds between two reports that no decision waits for; absent: derived from
  // `parallelism`.
  std::optional<double> report_seconds;
  std::optional<double> heartbeat;  // seconds without a report after which the run counts as hung
  double grace_period = 30;         // seconds between SIGTERM and SIGKILL
  CheckpointPlace checkpoints;
  std::optional<ParentPlace> parent;
  std::optional<TrainerConfig> trainer;  // resolved; absent for the user's own image
  bool operator==(const TrialFile&) const = default;
};

Json write_trial_file(const TrialFile& file);
// Errors list every wrong field, one a line.
Result<TrialFile> read_trial_file(const Json& document);

}  // namespace fettle::api
