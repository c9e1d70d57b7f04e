// IntervalUnion: the union of intervals of time, which are added in any order. A value; not
// synchronised.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fettle::core {

using Interval = std::pair<std::int64_t, std::int64_t>;  // from, to; milliseconds

class IntervalUnion {
 public:
  // Empty intervals add nothing.
  void add(const Interval& interval);
  // The length of the union of all added intervals and `more`.
  std::int64_t length_with(const std::vector<Interval>& more) const;

 private:
  std::vector<Interval> parts_;  // disjoint, ascending, with gaps between them
  std::int64_t length_ = 0;
};

}  // namespace fettle::core
