// Importance and dependence of one objective, as data for the page. Pure.
#pragma once

#include <cstddef>

#include "base/json.h"
#include "cli/views/view.h"

namespace fettle::cli {

// Returns {"trials", "quality", "clipped", "importance": [...], "pairs": [...], "dependence":
// {...}, "surface": {}}, where the surface is null if no two parameters interact; or {"why": "..."}
// if nothing can be said yet. `objective` is an index into spec.objectives.
Json insight_data(const RunView& view, std::size_t objective);

}  // namespace fettle::cli
