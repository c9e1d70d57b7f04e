#include "trainer/model/liveness.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace fettle::trainer {

std::int64_t Liveness::add(std::int64_t size, std::int64_t step) {
  intervals_.push_back({size, step, step});
  return std::ssize(intervals_) - 1;
}

std::int64_t Liveness::extend(std::int64_t buffer, std::int64_t step) {
  intervals_[static_cast<std::size_t>(buffer)].end = step;
  return buffer;
}

std::int64_t Liveness::peak() const {
  std::map<std::int64_t, std::int64_t> change;  // change of the elements in use, by step
  for (const Interval& buffer : intervals_) {
    change[buffer.begin] += buffer.size;
    change[buffer.end + 1] -= buffer.size;
  }
  std::int64_t in_use = 0;
  std::int64_t most = 0;
  for (const auto& [step, by] : change) most = std::max(most, in_use += by);
  return most;
}

// Greedy by size (Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net
// Inference"): places the largest buffer first, each at the lowest free offset.
Liveness::Arrangement Liveness::arrange() const {
  std::vector<std::size_t> largest_first(intervals_.size());
  std::iota(largest_first.begin(), largest_first.end(), std::size_t{0});
  std::ranges::stable_sort(largest_first, std::greater(),
                           [this](std::size_t i) { return intervals_[i].size; });
  Arrangement found;
  found.offsets.resize(intervals_.size(), 0);
  std::vector<std::size_t> placed;  // ascending by offset
  for (const std::size_t i : largest_first) {
    const Interval& buffer = intervals_[i];
    // Walk upwards over the buffers in the way, until the gap before the next is large enough.
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      if (!buffer.overlaps(intervals_[other])) continue;
      if (offset + buffer.size <= found.offsets[other]) break;
      offset = std::max(offset, found.offsets[other] + intervals_[other].size);
    }
    found.offsets[i] = offset;
    found.elements = std::max(found.elements, offset + buffer.size);
    const auto above = std::ranges::upper_bound(
        placed, offset, {}, [&found](std::size_t other) { return found.offsets[other]; });
    placed.insert(above, i);
  }
  return found;
}

}  // namespace fettle::trainer
