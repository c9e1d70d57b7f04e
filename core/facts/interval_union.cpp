#include "core/facts/interval_union.h"

#include <algorithm>

namespace fettle::core {

void IntervalUnion::add(const Interval& interval) {
  if (interval.second <= interval.first) return;
  std::int64_t from = interval.first;
  std::int64_t to = interval.second;
  const auto first = std::ranges::partition_point(
      parts_, [&](const Interval& p) { return p.second < interval.first; });
  // [first, last) are the parts that touch the interval: they become one part with it.
  auto last = first;
  for (; last != parts_.end() && last->first <= interval.second; ++last) {
    from = std::min(from, last->first);
    to = std::max(to, last->second);
    length_ -= last->second - last->first;
  }
  length_ += to - from;
  if (first == last) {
    parts_.insert(first, {from, to});
  } else {
    *first = {from, to};
    parts_.erase(first + 1, last);
  }
}

std::int64_t IntervalUnion::length_with(const std::vector<Interval>& more) const {
  IntervalUnion apart;
  for (const Interval& interval : more) apart.add(interval);
  // Sums both lengths and subtracts the overlap once.
  std::int64_t length = length_ + apart.length_;
  for (const auto& [from, to] : apart.parts_) {
    auto part =
        std::ranges::partition_point(parts_, [&](const Interval& p) { return p.second <= from; });
    for (; part != parts_.end() && part->first < to; ++part) {
      length -= std::min(to, part->second) - std::max(from, part->first);
    }
  }
  return length;
}

}  // namespace fettle::core
