#include "core/interval_union.h"

#include <algorithm>

namespace fettle::core {

void IntervalUnion::add(const Interval& interval) {
  if (interval.second <= interval.first) return;
  Interval merged = interval;
  const auto first = std::partition_point(
      parts_.begin(), parts_.end(), [&](const Interval& p) { return p.second < interval.first; });
  auto last = first;
  for (; last != parts_.end() && last->first <= interval.second; ++last) {
    merged = {std::min(merged.first, last->first), std::max(merged.second, last->second)};
    length_ -= last->second - last->first;
  }
  length_ += merged.second - merged.first;
  if (first == last) {
    parts_.insert(first, merged);
  } else {
    *first = merged;
    parts_.erase(first + 1, last);
  }
}

std::int64_t IntervalUnion::length_with(std::vector<Interval> more) const {
  IntervalUnion apart;
  for (const Interval& interval : more) apart.add(interval);
  std::int64_t length = length_ + apart.length_;
  for (const auto& [from, to] : apart.parts_) {
    auto part = std::partition_point(parts_.begin(), parts_.end(),
                                     [&](const Interval& p) { return p.second <= from; });
    for (; part != parts_.end() && part->first < to; ++part) {
      length -= std::min(to, part->second) - std::max(from, part->first);
    }
  }
  return length;
}

}  // namespace fettle::core
