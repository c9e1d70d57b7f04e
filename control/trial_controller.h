// TrialController: reads a Trial and its runs, plans, carries the plan out.
// Used by the Manager, from its worker thread.
#pragma once

#include <vector>

#include "base/result.h"
#include "control/clock.h"
#include "control/observer.h"
#include "control/reconcile.h"
#include "control/runs.h"
#include "control/store.h"
#include "core/plan.h"

namespace fettle::control {

class TrialController {
 public:
  TrialController(Store& store, Runs& runs, Clock& clock, Observer& observer)
      : store_(store), runs_(runs), clock_(clock), observer_(observer) {}

  // Errors are those of the first action that failed; the actions before it are done.
  // A Trial that is gone, or whose Study is, is no error.
  Result<Looked> reconcile(const Key& key);

 private:
  // Carries out the plan for what is seen; `trial` becomes what is stored.
  Result<Looked> carry_out(const api::Study& study, api::Trial& trial,
                           const std::vector<core::Run>& runs);
  Status execute(const core::TrialAction& action, const api::Study& study, api::Trial& trial);
  void note(const core::EventNote& event, const api::Trial& trial);

  Store& store_;
  Runs& runs_;
  Clock& clock_;
  Observer& observer_;
  std::vector<core::Run> refused_;  // runs that this look could not start, as if they had exited
};

}  // namespace fettle::control
