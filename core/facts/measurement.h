// Measurement: the values of a Study's objectives in a Report (api/trial/report.h), and whether its
// constraints hold. Metrics may be non-finite. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/report.h"
#include "api/trial/trial.h"

namespace fettle::core {

// One value for each objective (absent where missing or non-finite) and feasibility.
struct Measurement {
  std::vector<std::optional<double>> values;
  bool infeasible = false;  // a value absent, or a constraint broken
};

// The newest value of each metric at or before `step`.
Measurement measure_at(const api::StudySpec& spec, const std::vector<api::HistoryPoint>& curve,
                       std::int64_t step);

// The values that a trial ended with, from report.metrics (which a thinned curve may lack) or else
// from the curve. `completed`: a metric that a constraint names must have been reported, since no
// later report will show that the constraint holds.
Measurement measure_end(const api::StudySpec& spec, const api::Report& report, bool completed);

// The same values, without regard to constraints.
Measurement measure_objectives(const api::StudySpec& spec, const api::Report& report);

// Whether the newest values are within all constraints; a metric that was not reported is no
// breach.
bool is_within_constraints(const api::StudySpec& spec, const api::Report& report);

// For messages: the objectives that `report` never mentions, and all metrics that it does, sorted.
std::vector<std::string> missing_metrics(const api::StudySpec& spec, const api::Report& report);
std::vector<std::string> seen_metrics(const api::Report& report);
// "a, b, c and 4 more"
std::string list_names(const std::vector<std::string>& names);

}  // namespace fettle::core
