// TrialController: reads a Trial and its runs, plans, carries the plan out.
// Used by the Manager, from its workers; different trials at the same time.
#pragma once

#include <vector>

#include "base/result.h"
#include "core/control/clock.h"
#include "core/control/observer.h"
#include "core/control/reconcile_result.h"
#include "core/control/runs.h"
#include "core/control/store.h"
#include "core/control/study_controller.h"
#include "core/plan.h"

namespace fettle::control {

class TrialController {
 public:
  TrialController(Store& store, Runs& runs, Clock& clock, Observer& observer,
                  StudyController& studies)
      : store_(store), runs_(runs), clock_(clock), observer_(observer), studies_(studies) {}

  // Returns the error of the first action that failed; the actions before it are done. A Trial that
  // is gone is no error; runs that it left behind are ended. A trial that outlived its Study is
  // ended; a trial of an earlier Study of the same name is left alone.
  Result<ReconcileResult> reconcile(const Key& key);

  // Writes that the trial's actions are refused with these words: the condition Waiting with the
  // reason Refused. "": they are not refused any more.
  Status set_refused(const Key& key, const std::string& words);

 private:
  // The state of one reconcile.
  struct Pass {
    const api::Study& study;
    api::Trial trial;                // as last stored
    std::vector<core::Run> refused;  // runs that could not be started, as if they had exited
  };

  // Carries out the plan for the observed runs.
  Result<ReconcileResult> carry_out(Pass& pass, const std::vector<core::Run>& runs);
  Result<ReconcileResult> reconcile_found(const api::Trial& trial);
  Result<ReconcileResult> reconcile_other(const api::Trial& trial);
  Result<ReconcileResult> execute(const core::TrialPlan& plan, Pass& pass);
  Status execute(const core::TrialAction& action, Pass& pass);
  Result<api::Trial> store(const api::Trial& next, const Pass& pass);
  Status start(const core::StartRun& action, Pass& pass);
  void note(const core::EventNote& event, const api::Trial& trial);

  Store& store_;
  Runs& runs_;
  Clock& clock_;
  Observer& observer_;
  StudyController& studies_;
};

}  // namespace fettle::control
