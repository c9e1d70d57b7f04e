// CheckpointFence: decides which process may write to a trial's directory of checkpoints.
//
// A process that slept (a paused node, a partition) may wake when another has taken over its trial.
// Both would then write to one directory, and the next run might resume from the older training. So
// a process claims the directory before it trains: it creates the file owner-RUN-N with O_EXCL, N
// being one more than the highest number of its run. The highest (RUN, N) owns the directory, and a
// writer checks its claim immediately before a checkpoint gets its name. Only the moment between
// that check and the rename remains unprotected.
// A run does not claim the directory of a later run; within a run the process that came last owns
// it, because it replaces the others. A process claims once, not once an epoch of its membership:
// otherwise it would claim again after it woke.
// A plain value; the functions do IO. One thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace fettle::trainer {

class CheckpointFence {
 public:
  // Creates the directory if it does not exist. `owner`: one line for people. Errors: kConflict: a
  // later run owns the directory; kIo: it cannot be written.
  static Result<CheckpointFence> claim(const std::string& directory, std::int64_t run,
                                       const std::string& owner);

  // kConflict, naming the owner, if another process has claimed the directory since.
  Status check() const;

  // A name that differs from that of every other process which writes to the directory: "2-1".
  std::string name() const {
    return std::to_string(mine_.run) + "-" + std::to_string(mine_.number);
  }

 private:
  struct Claim {
    std::int64_t run = 0;
    std::int64_t number = 0;
    auto operator<=>(const Claim&) const = default;
  };
  CheckpointFence(std::string directory, Claim mine)
      : directory_(std::move(directory)), mine_(mine) {}
  static std::string path_of(const std::string& directory, const Claim& claim);
  static Claim highest_in(const std::string& directory);
  static Result<bool> create(const std::string& path, const std::string& owner);
  static Error taken(const std::string& directory, const Claim& by);
  void remove_older() const;

  std::string directory_;
  Claim mine_;
};

}  // namespace fettle::trainer
