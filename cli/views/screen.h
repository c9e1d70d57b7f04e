// The live screen of `fettle run`, which `fettle status` prints once.
//
// Pure: a view in, text out; drawing it again and again in place is terminal.h's job.
#pragma once

#include <string>

#include "cli/views/text.h"
#include "cli/views/view.h"

namespace fettle::cli {

inline constexpr int kAllRows = 1 << 20;

// At most `rows` lines of at most `columns` columns each, every one ended by a line break. Where
// there is little room, events are left out first, then running trials but the first ones, then the
// best configuration.
std::string render_screen(const RunView& view, int columns, int rows, const Style& style);

}  // namespace fettle::cli
