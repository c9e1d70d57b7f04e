// All trials of a study as a table for people, as CSV and as JSON. Pure.
#pragma once

#include <string>

#include "cli/terminal/text.h"
#include "cli/views/view.h"

namespace fettle::cli {

// Renders one line for each trial, in the order of creation, cut to `columns`.
std::string render_trials(const RunView& view, int columns, const Style& style);

// RFC 4180 with a header: trial, index, phase, step, a column for each objective, infeasible,
// seconds, runs, a column for each parameter ("parameters.<name>"), message. Absent values are
// empty; a record is always one line. Cells that a spreadsheet would take for a formula begin with
// an apostrophe.
std::string trials_csv(const RunView& view);

// Returns an array of Trial documents, one a line.
std::string trials_json(const RunView& view);

}  // namespace fettle::cli
