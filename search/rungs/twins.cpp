#include "search/rungs/twins.h"

#include <algorithm>
#include <optional>

namespace fettle::search {

namespace {

// Minimum number of equal pairs, and their minimum share of all pairs.
constexpr std::int64_t kLeastPairs = 3;
constexpr double kLeastShare = 0.75;

}  // namespace

bool ties_repeat(const RungTable& table, std::int64_t rung) {
  if (rung + 1 >= table.rungs()) return false;
  const std::vector<RungTable::Entry>& entries = table.at(rung);
  // Pairs the first trial of a tie that came to the next rung with each of the others.
  std::int64_t pairs = 0;
  std::int64_t equal = 0;
  for (std::size_t from = 0; from < entries.size();) {
    std::vector<double> above;  // losses at the next rung
    std::size_t to = from;
    for (; to < entries.size() && are_tied(entries[from], entries[to]); ++to) {
      const std::optional<double> loss = table.loss(entries[to].trial, rung + 1);
      if (loss) above.push_back(*loss);
    }
    from = to;
    if (above.empty()) continue;
    pairs += static_cast<std::int64_t>(above.size()) - 1;
    equal += std::count(above.begin() + 1, above.end(), above.front());
  }
  return equal >= kLeastPairs &&
         static_cast<double>(equal) >= kLeastShare * static_cast<double>(pairs);
}

bool has_promoted_twin(const RungTable& table, const std::vector<Stage>& stages, std::int64_t rung,
                       std::int64_t trial) {
  const auto shows_the_same = [&](std::int64_t other, std::int64_t at) {
    const std::optional<double> loss = table.loss(trial, at);
    return loss && table.loss(other, at) == loss;
  };
  if (rung < 1 && !ties_repeat(table, rung)) return false;
  const std::vector<RungTable::Entry>& entries = table.at(rung);
  return std::any_of(entries.begin(), entries.end(), [&](const RungTable::Entry& other) {
    return other.trial != trial && stages[static_cast<std::size_t>(other.trial)].rung > rung &&
           shows_the_same(other.trial, rung) && (rung < 1 || shows_the_same(other.trial, rung - 1));
  });
}

}  // namespace fettle::search
