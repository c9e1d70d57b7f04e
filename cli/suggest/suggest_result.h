// The values in a tell or a report of the suggest protocol (suggest.h).
// Pure; may be called from any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::cli {

// Objectives and other metrics of a trial at `report.step`. Metrics without a value are NaN.
struct ToldResult {
  api::Report report;
  std::optional<double> cost;  // of the trial until then
};

// At the last step, unless the caller sets another one.
Result<ToldResult> read_result(const api::StudySpec& spec, const Json& content);

// Whether `content` has a value for the objectives.
bool has_value(const Json& content);

// Requires the metrics of all constraints, unless the trial has no value. `verb` is for the error.
Status check_constrained(const api::StudySpec& spec, const ToldResult& result,
                         std::string_view verb);

// As a fact of the kind Result. `completed`: the trial has ended, so all constraints are judged.
api::Fact fact_of(const api::StudySpec& spec, const ToldResult& result, bool completed);

}  // namespace fettle::cli
