#include "core/run_outcome.h"

#include "core/no_result.h"

namespace fettle::core {

using api::Outcome;
using api::RunRecord;

JudgedRun judge_run(const api::StudySpec& study, const api::TrialSpec& spec,
                    const std::optional<api::Report>& report, const RunRecord& record,
                    const Run& run) {
  // A promoted trial still has the report of the run before, which was final for that one.
  const bool reached = report && report->step >= record.until_step;
  const bool final_now =
      report && report->final_result && (reached || report->step > record.last_step);
  Outcome observed = run.outcome.value_or(Outcome::kFailed);
  // The final report was written before the disruption: nothing is lost.
  if (observed == Outcome::kDisrupted && final_now) return {Outcome::kSucceeded, run.reason};
  // Most programs never report "final". This one had reached its last step, and exited with 0 when
  // it was interrupted.
  const bool interrupted = observed == Outcome::kDisrupted || observed == Outcome::kStopped;
  if (interrupted && reached && run.exit_code == 0) observed = Outcome::kSucceeded;
  // Our own stop explains any exit but that of a trial that was faster than the stop.
  const bool finished = final_now || reached;
  if (record.stopping && !(observed == Outcome::kSucceeded && finished)) {
    const bool hung = *record.stopping == Outcome::kHung;
    return {*record.stopping, record.message + (hung ? with_reason(run.silence) : "")};
  }
  if (observed != Outcome::kSucceeded) return {observed, run.reason};
  const std::string missing = explain_no_result(study, spec, report, record, run);
  if (missing.empty()) return {observed, run.reason};
  return {Outcome::kFailed, missing};
}

}  // namespace fettle::core
