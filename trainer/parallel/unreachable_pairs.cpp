#include "trainer/parallel/unreachable_pairs.h"

#include <algorithm>

namespace fettle::trainer {

void UnreachablePairs::report(std::int64_t reporter, std::int64_t other) {
  if (reporter == other) return;
  ++reports_[std::minmax(reporter, other)];
}

void UnreachablePairs::end_epoch(bool progress) {
  if (progress) {
    *this = {};
  } else {
    ++fruitless_;
  }
}

std::optional<UnreachablePairs::Pair> UnreachablePairs::worst() const {
  // max_element returns the first maximum, and the map is sorted by names.
  const auto most =
      std::ranges::max_element(reports_, {}, [](const auto& entry) { return entry.second; });
  if (most == reports_.end()) return std::nullopt;
  return Pair{most->first.first, most->first.second};
}

}  // namespace fettle::trainer
