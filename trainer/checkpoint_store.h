// CheckpointStore: the checkpoints of one trial in their directory: the newest few are kept.
//
// Writing is atomic and durable: after a crash or a power cut the directory holds whole files
// only, the older ones untouched. One process at a time may write to a directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint.h"

namespace fettle::trainer {

class CheckpointStore {
 public:
  // `directory` "" keeps nothing: save() does nothing and newest() finds nothing.
  CheckpointStore(std::string directory, std::int64_t keep)
      : directory_(std::move(directory)), keep_(keep) {}

  // Returns the file's path ("" without a directory) once it is durable, then removes all but the
  // newest `keep`. Errors: the directory cannot be made, a full disk; older files stay.
  Result<std::string> save(const Checkpoint& checkpoint);

  struct Found {
    std::optional<Checkpoint> checkpoint;
    std::string path;
    std::vector<std::string> skipped;  // newer ones that cannot be read, and why
  };
  // The newest checkpoint that is whole. Errors: there are some, but none of them is; so nobody
  // starts over unknowingly what has cost hours.
  Result<Found> newest() const;

  // The checkpoint taken at the end of epoch `epoch`. Errors: none, or damaged.
  Result<Checkpoint> at_epoch(std::int64_t epoch) const;

 private:
  struct File {
    std::int64_t updates = 0;
    std::int64_t epoch = 0;
    bool whole_epoch = false;
    std::string path;
  };
  std::vector<File> list() const;  // newest first
  void remove_superseded() const;

  const std::string directory_;
  const std::int64_t keep_;
};

}  // namespace fettle::trainer
