// TrainingReports: a training's reports and the checkpoints that they name. Rank 0 reports; the
// other workers take part in the checkpoints. One thread.
#pragma once

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
      : parts_(parts), keeps_checkpoints_(keeps_checkpoints) {}

  // Reports again the whole epoch that the training resumes from, if a new process resumes from the
  // checkpoint `resumed_from` (not ""), and calls the hook for the start.
  void report_start(const TrainingState& state, const std::string& resumed_from);

  // Saves a checkpoint, then reports. All workers call it. Errors: a checkpoint cannot be written;
  // a worker was lost.
  Status save_and_report(const TrainingState& state, const Metrics& metrics, bool final_result);

  // `what`: names the quantity that is not finite.
  void report_divergence(const TrainingState& state, const std::string& what);

 private:
  // Returns the checkpoint's path, at rank 0.
  Result<std::string> save_checkpoint(const TrainingState& state);
  // The passes' implementations; null after rank 0's first report of a run.
  Json implementations_once();

  const TrainingParts parts_;
  const bool keeps_checkpoints_;
  bool said_implementations_ = false;
};

}  // namespace fettle::trainer
