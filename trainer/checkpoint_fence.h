// CheckpointFence: which process may write to a trial's directory of checkpoints.
//
// A process that slept (a paused node, a partition) may wake when another has taken over its trial.
// Both would then write to one directory, and the next run might resume from the older training. So
// a process that begins to train claims the directory: it creates the file owner-RUN-N with O_EXCL,
// N being one more than there is of its run. The highest (RUN, N) owns the directory, and a writer
// asks for it immediately before a checkpoint gets its name. What remains is the moment between
// that question and the rename.
// A run does not claim the directory of a later run; of one run the process that came last owns it,
// because it was started in the place of the others. A process claims once, not once an epoch of
// its membership: else it would claim again after it woke.
// A plain value; the functions do IO. One thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace fettle::trainer {

class CheckpointFence {
 public:
  // Makes the directory if there is none. `owner`: for people, one line. Errors: kConflict: a later
  // run has it; kIo: it cannot be written.
  static Result<CheckpointFence> claim(const std::string& directory, std::int64_t run,
                                       const std::string& owner);

  // kConflict, with who has it, if the directory was claimed by another process since.
  Status check() const;

  // Differs from that of every other process which writes to the directory: "2-1".
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
