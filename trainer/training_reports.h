// TrainingReports: a training's reports and the checkpoints that they name. Rank 0 reports; the
// other workers take part in the checkpoints. One thread.
//
// A checkpoint costs two flushes to the disk, which is more than a short epoch. So the end of an
// epoch leaves none if the last one, or the start, is younger than task.between_checkpoints, unless
// another trial may start there (a rung), or the training ends or stops there. With several workers
// every epoch leaves one: their clocks differ, and a checkpoint is joint work.
#pragma once

#include <chrono>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "trainer/reporter/training_report.h"
#include "trainer/training_parts.h"

namespace fettle::trainer {

class TrainingReports {
 public:
  // `keeps_checkpoints`: rank 0 does.
  TrainingReports(const TrainingParts& parts, bool keeps_checkpoints)
      : parts_(parts), keeps_checkpoints_(keeps_checkpoints), saved_at_(parts.hooks.now()) {}

  // Whether the whole epoch that the training resumes from is to be reported again: a new process
  // resumes there from the checkpoint `resumed_from` (not "").
  bool repeats_report(const TrainingState& state, const std::string& resumed_from) const;
  void repeat_report(const TrainingState& state, const Metrics& results,
                     const std::string& resumed_from);
  // Calls the hook for the start.
  void report_start(const TrainingState& state);

  // Saves a checkpoint, unless it may be skipped, then reports. All workers call it. Errors: a
  // checkpoint cannot be written; a worker was lost.
  Status save_and_report(const TrainingState& state, const Metrics& metrics, bool final_result);

  // Saves and reports a checkpoint that the end of the newest epoch has skipped: the training stops
  // there. Errors: as above.
  Status catch_up(const TrainingState& state);

  // `what`: names the quantity that is not finite. `others`: further metrics of the report.
  void report_divergence(const TrainingState& state, const std::string& what,
                         const Metrics& others = {});

 private:
  bool may_skip(const TrainingState& state, bool final_result) const;
  // Saves if `saves`, then reports.
  Status report(const TrainingState& state, const Metrics& metrics, bool final_result, bool saves);
  // Returns the checkpoint's path, at rank 0.
  Result<std::string> save_checkpoint(const TrainingState& state);
  // The passes' implementations; null after rank 0's first report of a run.
  Json implementations_once();

  const TrainingParts parts_;
  const bool keeps_checkpoints_;
  bool said_implementations_ = false;
  std::chrono::steady_clock::time_point saved_at_;  // of the last checkpoint, or the start
  bool skipped_ = false;                            // the newest epoch left no checkpoint
};

}  // namespace fettle::trainer
