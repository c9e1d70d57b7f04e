// Liveness: the buffers that a sequence of steps needs at the same time, and their arrangement in
// one block of memory. Two buffers may share memory if no step needs both.
//
// Steps are numbered from 0. A plain value; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace fettle::trainer {

// A buffer of `size` elements that is live from step `begin` to step `end`, both included.
struct Interval {
  std::int64_t size = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool overlaps(const Interval& other) const { return begin <= other.end && other.begin <= end; }
};

class Liveness {
 public:
  // Adds a buffer, written by `step`; returns its number.
  std::int64_t add(std::int64_t size, std::int64_t step);
  // Keeps `buffer` live until `step`, which is no earlier than previous ones; returns its number.
  std::int64_t extend(std::int64_t buffer, std::int64_t step);

  // The most elements that one step needs: a lower bound for every arrangement.
  std::int64_t peak() const;

  struct Arrangement {
    std::vector<std::int64_t> offsets;  // by buffer, in elements
    std::int64_t elements = 0;          // size of the block
  };
  Arrangement arrange() const;

 private:
  std::vector<Interval> intervals_;  // by buffer
};

}  // namespace fettle::trainer
