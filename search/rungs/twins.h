// Twins: trials whose known curves are equal to the last bit. They occur if a parameter has no
// effect, and on a plateau that none of them has left. A second one would, if promoted, show the
// same again. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "search/rungs/rung_table.h"
#include "search/search.h"

namespace fettle::search {

// Whether ties at `rung` mean that curves are equal: nearly all trials that are equal there and
// have come to the next rung were equal there as well, and there were such trials. Metrics with few
// values have ties by chance, which the next rung resolves.
bool ties_repeat(const RungTable& table, std::int64_t rung);

// Whether a twin was promoted from `rung`: another trial with the same values here and at the rung
// below; at the lowest rung another trial with the same value, if ties repeat.
bool has_promoted_twin(const RungTable& table, const std::vector<Stage>& stages, std::int64_t rung,
                       std::int64_t trial);

}  // namespace fettle::search
