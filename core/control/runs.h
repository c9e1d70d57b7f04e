// Runs: the processes behind trials. On a cluster Jobs, locally child processes, in tests a table.
//
// Names are deterministic ("<trial>-r<run>"), so starting a run that exists succeeds and changes
// nothing, and stopping or deleting one that is gone succeeds. Nothing blocks on the run itself.
// Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/result.h"
#include "core/plan.h"

namespace fettle::control {

class Runs {
 public:
  virtual ~Runs() = default;

  // Whether runs of this Study can start at all; asked before its first trial is created, once for
  // each generation. kInvalid: they never can as it is written (the Study fails). Other errors: not
  // known yet.
  virtual Status check(const api::Study& study) {
    (void)study;
    return success();
  }

  // Starts run `run` of `trial` with trial.spec.workers workers, up to trial.spec.until_step.
  // kInvalid: it can never start as the template is written, by our own checks, and counts as
  // failed; kAlreadyExists: a foreign object has its name, and it counts as disrupted. Other
  // errors: it cannot start now.
  virtual Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) = 0;
  virtual Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) = 0;
  // SIGTERM to all its processes, SIGKILL after the grace period.
  virtual Status stop(const api::Trial& trial, std::int64_t run) = 0;
  // Deletes the remains of a run that has exited, except its log.
  virtual Status remove(const api::Trial& trial, std::int64_t run) = 0;
  // The runs of a trial that exist now.
  virtual Result<std::vector<core::Run>> observe(const api::Trial& trial) = 0;

  // Asked after each reconcile of the trial. An error: a run of it makes no progress before a
  // person acts. It blocks the Study (refusals.h) until it is gone.
  virtual Status check_progress(const api::Trial& trial) {
    (void)trial;
    return success();
  }

  // Ends the leftovers of a trial that is gone.
  virtual Status remove_orphans(const std::string& ns, const std::string& trial) {
    (void)ns;
    (void)trial;
    return success();
  }

  // How many trials of this Study can run here at once.
  virtual core::Capacity capacity(const api::Study& study) = 0;

  // `listener` is called, from any thread, with the trial whose runs changed: its name, or
  // "namespace/name" where there are namespaces.
  virtual void watch(std::function<void(const std::string& trial)> listener) = 0;
};

}  // namespace fettle::control
