// UnreachablePairs: which worker is left out where two of them reach rank 0 but not each other.
//
// Rank 0 hears every member, so after each failed collective all of them meet again, and fail
// again: without a limit they would hold their GPUs for days and train nothing. So rank 0 counts
// the epochs of the membership that fail without a single optimiser step and without the loss of a
// member, and remembers who could not reach whom in them. After kMostFruitlessEpochs one worker of
// the pair that was reported most often is left out: the higher rank, because rank 0 has to stay.
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
  // In the epoch under way `reporter` could not reach `other`. Names are those that workers keep
  // from epoch to epoch (membership.h).
  void report(std::int64_t reporter, std::int64_t other);

  // An epoch has ended. A step, an end that all agreed on, or other members in the next epoch are
  // progress, which forgets the rest.
  void end_epoch(bool progress);

  // More than a few epochs in a row have failed without a step: a worker has to be left out, or, if
  // none was reported, all have to give up.
  bool is_stuck() const { return fruitless_ >= kMostFruitlessEpochs; }

  struct Pair {
    std::int64_t lower = 0;
    std::int64_t higher = 0;  // the one to leave out
  };
  // The pair that was reported most often since the last progress; ties: the lowest names.
  std::optional<Pair> worst() const;

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, int> reports_;  // (lower, higher)
  int fruitless_ = 0;
};

}  // namespace fettle::trainer
