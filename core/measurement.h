// What a Study's objectives and constraints make of a Report (api/report.h).
// Metrics may be non-finite. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/report.h"
#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

// Objective values (one an objective, absent where non-finite or missing) and feasibility.
struct Measurement {
  std::vector<std::optional<double>> values;
  bool infeasible = false;  // a value absent, or a constraint broken
};

// The values as of the last point of `curve` at or before `step`; a metric that this point lacks is
// taken from the newest point before it.
Measurement measure_at(const api::StudySpec& spec, const std::vector<api::HistoryPoint>& curve,
                       std::int64_t step);

// The values that a trial ended with: report.metrics, which a thinned curve may lack, before the
// curve. `completed`: a metric that a constraint names must be there too, since nothing else will
// show that it holds.
Measurement measure_end(const api::StudySpec& spec, const api::Report& report, bool completed);

// Of the same values the objectives alone, whatever the constraints.
Measurement measure_objectives(const api::StudySpec& spec, const api::Report& report);

// Whether the newest values are within all constraints; those that are not known yet count as such.
bool is_within_constraints(const api::StudySpec& spec, const api::Report& report);

// The objective metrics that `report` never mentions, and those it does, for messages.
std::vector<std::string> missing_metrics(const api::StudySpec& spec, const api::Report& report);
std::vector<std::string> seen_metrics(const api::Report& report);
// "a, b, c and 4 more"
std::string list_names(const std::vector<std::string>& names);

}  // namespace fettle::core
