// Twins: trials whose curves are equal to the last bit as far as they are known. There are such
// where a parameter has no effect, and on a plateau that none of them has left. A second one that
// is promoted would show the same again. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "search/rungs/rung_table.h"
#include "search/search.h"

namespace fettle::search {

// Whether ties at `rung` mean that curves are equal: of the trials that are equal there and have
// come to the next rung, nearly all were equal there as well, and some were. Metrics of few values
// have ties by chance, which the next rung resolves.
bool ties_repeat(const RungTable& table, std::int64_t rung);

// Whether another trial that shows the same was promoted from `rung`: one with the same values here
// and at the rung below; at the lowest rung one with the same value, where ties repeat.
bool has_promoted_twin(const RungTable& table, const std::vector<Stage>& stages, std::int64_t rung,
                       std::int64_t trial);

}  // namespace fettle::search
