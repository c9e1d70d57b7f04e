#include "core/no_result.h"

#include <vector>

#include "api/names.h"
#include "core/measurement.h"

namespace fettle::core {

using api::RunRecord;
using api::StudySpec;
using api::TrialSpec;

namespace {

// Where the run was to pause at a rung, the rung may come before the program's first evaluation:
// then the Study's field to raise. "" for any other run.
std::string explain_rung(const StudySpec& study, const RunRecord& record) {
  if (record.until_step >= study.resource.max) return "";
  const api::AlgorithmKind algorithm = study.algorithm.name;
  const std::string field = api::traits(algorithm).replays    ? "algorithm.legs[].untilStep"
                            : api::replaces_trials(algorithm) ? "algorithm.interval"
                                                              : "resource.min";
  return "; it was sent to " + study.resource.unit + " " + std::to_string(record.until_step) +
         " first: if " + study.objectives.front().metric + " comes later, raise " + field;
}

}  // namespace

namespace {

// What the program should have printed: an example, or that the Study has an expression for it.
std::string expected_output(const StudySpec& study) {
  const std::string& metric = study.objectives.front().metric;
  if (study.trial.metrics && !study.trial.metrics->regex.empty()) {
    return metric + ", as spec.trial.metrics.regex finds it on its output";
  }
  return metric + R"(, for example a line {"step": 1, ")" + metric + R"(": 0.5} on its output)";
}

}  // namespace

std::string with_reason(const std::string& silence) {
  return silence.empty() ? "" : "; " + silence;
}

std::string explain_no_result(const StudySpec& study, const TrialSpec& trial,
                              const std::optional<api::Report>& report, const RunRecord& record,
                              const Run& run) {
  // A promoted trial need not report again: its report of the run before still holds. Until the
  // run has ended, last_step is the step that was reported before it began.
  const bool promoted = trial.search.rung > trial.search.bracket;
  const bool reported = report && (promoted || run.report || report->step > record.last_step ||
                                   report->step >= record.until_step);
  if (!reported) {
    return "exited with 0 but reported no metric; expected " + expected_output(study) +
           explain_rung(study, record) + with_reason(run.silence);
  }
  const std::vector<std::string> missing = missing_metrics(study, *report);
  if (missing.empty()) return "";
  const std::vector<std::string> seen = seen_metrics(*report);
  return "exited with 0 but never reported the objective " + list_names(missing) +
         "; it reported " + (seen.empty() ? "no metric" : list_names(seen)) +
         explain_rung(study, record);
}

}  // namespace fettle::core
