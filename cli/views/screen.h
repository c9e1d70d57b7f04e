// The live screen of `fettle run`, which `fettle status` prints once.
//
// Pure: a view in, text out; drawing it again and again in place is terminal.h's job.
#pragma once

#include <string>

#include "cli/terminal/text.h"
#include "cli/views/view.h"

namespace fettle::cli {

inline constexpr int kAllRows = 1 << 20;

// Renders at most `rows` lines of at most `columns` columns each, every line ended by a line break.
// If there is little room, events are omitted first, then all but the first running trials, then
// the best configuration.
std::string render_screen(const RunView& view, int columns, int rows, const Style& style);

}  // namespace fettle::cli
