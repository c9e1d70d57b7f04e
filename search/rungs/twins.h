// Twins: trials whose curves are equal to the last bit as far as they are known. There are such
// where a parameter has no effect, and on a plateau that none of them has left. A second one that
// is promoted would show the same again. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "search/rungs/rung_table.h"
#include "search/search.h"

namespace fettle::search {

// Whether another trial, with the same values at `rung` and the rung below, was promoted from
// `rung`. A single equal value proves nothing: at the lowest rung no trial has a twin.
bool has_promoted_twin(const RungTable& table, const std::vector<Stage>& stages, std::int64_t rung,
                       std::int64_t trial);

}  // namespace fettle::search
