// RunObserver: updates the records of a trial's runs from the runs that exist. The first part of
// plan_trial() (trial_plan.cpp).
//
// Not synchronised; the view and the draft must outlive it.
#pragma once

#include <cstdint>

#include "api/trial/trial.h"
#include "core/plan.h"
#include "core/trial/trial_plan_draft.h"

namespace fettle::core {

// The interval at which a pending run is observed: some reasons to wait show only after a time.
inline constexpr std::int64_t kWaitingMs = 5'000;
// A run that exists but is not recorded means that this view is stale: reconcile again.
inline constexpr std::int64_t kStaleViewMs = 1'000;

class RunObserver {
 public:
  RunObserver(const TrialView& view, std::int64_t now_ms, TrialPlanDraft& draft);

  // Updates the records and stops or deletes runs that are not wanted. Returns false if the view is
  // stale: nothing may be decided from it.
  bool observe();

  // Records how the run ended. `run` has exited.
  void close_record(api::RunRecord& record, const Run& run);

 private:
  void adopt_first(const Run& run);
  void stop_or_delete(const Run& run);
  void update_record(api::RunRecord& record, const Run& run);
  void reset_running(api::RunRecord& record);
  void note_preemption(const api::RunRecord& record);
  void update_unplaced(api::RunRecord& record, const Run& run);
  void update_workers(api::RunRecord& record, const Run& run);

  const api::Study& study_;
  const api::Trial& trial_;
  const std::vector<Run>& runs_;
  const std::int64_t now_ms_;
  const bool resumes_;  // checkpoints outlive a run
  TrialPlanDraft& draft_;
  api::TrialStatus& status_;  // of the draft
};

}  // namespace fettle::core
