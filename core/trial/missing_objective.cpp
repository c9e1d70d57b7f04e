#include "core/trial/missing_objective.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/fields/nearest.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/facts/measurement.h"

namespace fettle::core {

using api::Outcome;
using api::RunRecord;
using api::StudySpec;

namespace {

// Names the Study's field to raise if the run was to pause at a rung, which may come before the
// program's first evaluation; "" for any other run.
std::string explain_rung(const StudySpec& study, const RunRecord& record) {
  if (record.until_step >= study.resource.max) return "";
  const api::AlgorithmKind algorithm = study.algorithm.name;
  const std::string field = api::traits(algorithm).replays    ? "algorithm.legs[].untilStep"
                            : api::replaces_trials(algorithm) ? "algorithm.interval"
                                                              : "resource.min";
  return "; it was sent to " + study.resource.unit + " " + std::to_string(record.until_step) +
         " first: if " + study.objectives.front().metric + " comes later, raise " + field;
}

// Disrupted, or stopped for a suspension: no fault of the program, and the next run continues it.
bool was_cut_short(const RunRecord& record) {
  return record.outcome == Outcome::kDisrupted || record.outcome == Outcome::kStopped;
}

// The newest step that was reported before the chain of runs that `record` continues, which are the
// runs right before it that were cut short.
std::int64_t step_before_leg(const std::vector<RunRecord>& records, const RunRecord& record) {
  std::int64_t step = 0;
  for (const RunRecord& earlier : records) {
    if (earlier.run >= record.run) break;
    if (!was_cut_short(earlier)) step = earlier.last_step;
  }
  return step;
}

bool has_reported(const EndedRun& ended) {
  if (!ended.report) return false;
  // A promoted trial need not report again: its report of the run before still holds.
  const bool promoted = ended.trial.search.rung > ended.trial.search.bracket;
  return promoted || ended.run.report || ended.report->step >= ended.record.until_step ||
         ended.report->step > step_before_leg(ended.records, ended.record);
}

// The output that was expected: an example, or a mention of the Study's own expression.
std::string expected_output(const StudySpec& study) {
  const std::string& metric = study.objectives.front().metric;
  if (study.trial.metrics && !study.trial.metrics->regex.empty()) {
    return metric + ", as spec.trial.metrics.regex finds it on its output";
  }
  return metric + R"(, for example a line {"step": 1, ")" + metric + R"(": 0.5} on its output)";
}

// The metric that was reported under nearly this name: in another case, or misspelt; "" if none.
std::string nearest_name(const std::string& metric, const std::vector<std::string>& seen) {
  const std::vector<std::string_view> names(seen.begin(), seen.end());
  return std::string(api::nearest(metric, names));
}

std::string suggest_name(const std::string& metric, const std::vector<std::string>& seen) {
  const std::string nearest = nearest_name(metric, seen);
  if (nearest.empty()) return "";
  return "; if it is " + nearest + " that counts, write metric: " + nearest + " in the Study";
}

}  // namespace

bool is_result_lost(const EndedRun& ended) {
  bool after_cut = false;
  for (const RunRecord& earlier : ended.records) {
    if (earlier.run < ended.record.run) after_cut = was_cut_short(earlier);
  }
  return after_cut && !has_reported(ended);
}

bool is_misspelt(const EndedRun& ended) {
  if (!ended.report) return false;
  const std::vector<std::string> seen = seen_metrics(*ended.report);
  return std::ranges::any_of(
      missing_metrics(ended.study.spec, *ended.report),
      [&](const std::string& metric) { return !nearest_name(metric, seen).empty(); });
}

std::string with_reason(const std::string& silence) {
  return silence.empty() ? "" : "; " + silence;
}

std::string explain_missing_objective(const EndedRun& ended) {
  const StudySpec& study = ended.study.spec;
  if (!has_reported(ended)) {
    return "exited with 0 but reported no metric; expected " + expected_output(study) +
           explain_rung(study, ended.record) + with_reason(ended.run.silence);
  }
  const std::vector<std::string> missing = missing_metrics(study, *ended.report);
  if (missing.empty()) return "";
  const std::vector<std::string> seen = seen_metrics(*ended.report);
  return "exited with 0 but never reported the objective " + list_names(missing) +
         "; it reported " + (seen.empty() ? "no metric" : list_names(seen)) +
         suggest_name(missing.front(), seen) + explain_rung(study, ended.record);
}

}  // namespace fettle::core
