// Reports of training: comparing them, joining those of a trial's runs, reading values off them.
// Metrics may be non-finite. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/report_history.h"

namespace fettle::core {

// Equality in which a non-finite metric equals a non-finite one: what survives a store.
bool same_report(const api::Report& a, const api::Report& b);

// `newer` as the continuation of `earlier`, the report of the trial's runs before it: points of the
// curve that `newer` does not repeat are kept, and so is the checkpoint if it names none. The curve
// is thinned to what it `needs` (report_history.h).
api::Report join_reports(const std::optional<api::Report>& earlier, const api::Report& newer,
                         const CurveNeeds& needs);

// The learning curve, ascending by step, newest values included.
std::vector<api::HistoryPoint> curve_of(const api::Report& report);

// Objective values (one an objective, absent where non-finite or missing) and feasibility.
struct Measured {
  std::vector<std::optional<double>> values;
  bool infeasible = false;  // a value absent, or a constraint broken
};

// The values as of the last point of `curve` at or before `step`; a metric that this point lacks is
// taken from the newest point before it.
Measured measure_at(const api::StudySpec& spec, const std::vector<api::HistoryPoint>& curve,
                    std::int64_t step);

// The values that a trial ended with: report.metrics, which a thinned curve may lack, before the
// curve. `completed`: a metric that a constraint names must be there too, since nothing else will
// show that it holds.
Measured measure_end(const api::StudySpec& spec, const api::Report& report, bool completed);

// The objective metrics that `report` never mentions, and those it does, for messages.
std::vector<std::string> missing_metrics(const api::StudySpec& spec, const api::Report& report);
std::vector<std::string> seen_metrics(const api::Report& report);

}  // namespace fettle::core
