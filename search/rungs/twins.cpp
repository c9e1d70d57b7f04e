#include "search/rungs/twins.h"

#include <algorithm>
#include <optional>

namespace fettle::search {

bool has_promoted_twin(const RungTable& table, const std::vector<Stage>& stages, std::int64_t rung,
                       std::int64_t trial) {
  if (rung < 1) return false;
  const std::optional<double> here = table.loss(trial, rung);
  const std::optional<double> below = table.loss(trial, rung - 1);
  if (!here || !below) return false;
  const std::vector<RungTable::Entry>& entries = table.at(rung);
  return std::any_of(entries.begin(), entries.end(), [&](const RungTable::Entry& other) {
    return other.trial != trial && other.loss == *here &&
           stages[static_cast<std::size_t>(other.trial)].rung > rung &&
           table.loss(other.trial, rung - 1) == below;
  });
}

}  // namespace fettle::search
