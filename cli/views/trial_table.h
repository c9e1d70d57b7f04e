// All trials of a study as a table for people, as CSV and as JSON. Pure.
#pragma once

#include <string>

#include "cli/views/text.h"
#include "cli/views/view.h"

namespace fettle::cli {

// One line a trial, in the order of creation, cut to `columns`.
std::string render_trials(const RunView& view, int columns, const Style& style);

// RFC 4180 with a header: trial, index, phase, step, one column an objective, infeasible, seconds,
// runs, one column a parameter ("parameters.<name>"), message. Absent values are empty; a record is
// always one line. Cells that a spreadsheet would take for a formula begin with an apostrophe.
std::string trials_csv(const RunView& view);

// An array of Trial documents, one a line.
std::string trials_json(const RunView& view);

}  // namespace fettle::cli
