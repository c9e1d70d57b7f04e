// UnreachablePairs: chooses the worker to exclude if two workers reach rank 0 but not each other.
//
// Rank 0 hears every member, so after each failed collective all of them meet again, and fail
// again: without a limit they would hold their GPUs for days and train nothing. So rank 0 counts
// the epochs of the membership that fail without a single optimiser step and without the loss of a
// member, and remembers who could not reach whom in them. After kMostFruitlessEpochs one worker of
// the pair that was reported most often is excluded: the higher rank, because rank 0 has to stay.
// A plain value of rank 0, without IO. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace fettle::trainer {

inline constexpr int kMostFruitlessEpochs = 3;

class UnreachablePairs {
 public:
  // Records that `reporter` could not reach `other` in this epoch. Names are those that workers
  // keep from epoch to epoch (membership.h).
  void report(std::int64_t reporter, std::int64_t other);

  // Call when an epoch has ended. A step, an end that all agreed on, or other members in the next
  // epoch are progress, which clears the count and the reports.
  void end_epoch(bool progress);

  // Whether kMostFruitlessEpochs in a row have failed without a step: one worker must be excluded
  // or, if none was reported, all must give up.
  bool is_stuck() const { return fruitless_ >= kMostFruitlessEpochs; }

  struct Pair {
    std::int64_t lower = 0;
    std::int64_t higher = 0;  // the one to exclude
  };
  // The pair that was reported most often since the last progress; ties: the lowest names.
  std::optional<Pair> worst() const;

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, int> reports_;  // (lower, higher)
  int fruitless_ = 0;
};

}  // namespace fettle::trainer
