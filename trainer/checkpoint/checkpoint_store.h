// CheckpointStore: the checkpoints of one trial in their directory. The newest few are kept, and
// those from which other trials may start.
//
// Writing is atomic and durable: after a crash or a power cut the directory holds only whole files,
// the older ones untouched. One process at a time may write to a directory; with a fence
// (checkpoint_fence.h) a process that was replaced gets an error instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/checkpoint_fence.h"

namespace fettle::trainer {

// The checkpoints that stay when another is written.
struct CheckpointsKept {
  std::int64_t newest = 2;
  std::int64_t at_rungs = 0;        // and as many of the newest at the end of one of these epochs,
  std::vector<std::int64_t> rungs;  // ascending: other trials may start from them
};

class CheckpointStore {
 public:
  // `directory` "": save() does nothing and newest() finds nothing. `fence`: this process's claim
  // to the directory; without it no other process may write there.
  explicit CheckpointStore(std::string directory, CheckpointsKept kept = {},
                           std::optional<CheckpointFence> fence = {})
      : directory_(std::move(directory)), kept_(std::move(kept)), fence_(std::move(fence)) {}

  bool keeps_any() const { return !directory_.empty(); }

  // Returns the file's path ("" without a directory) once it is durable, then removes the
  // checkpoints that are not to be kept. Errors: the directory cannot be made, a full disk;
  // kConflict: another process owns the directory now. After an error all checkpoints stay as they
  // are.
  Result<std::string> save(const Checkpoint& checkpoint) const;

  // Errors: kConflict: another process owns the directory now.
  Status may_write() const { return fence_ ? fence_->check() : success(); }

  struct Found {
    std::optional<Checkpoint> checkpoint;
    std::string path;
    std::vector<std::string> skipped;  // newer, unreadable checkpoints, with the reasons
  };
  // The newest intact checkpoint. Errors: checkpoints exist, but all are damaged; so a training
  // that has cost hours does not start over unnoticed.
  Result<Found> newest() const;

  // The checkpoint taken at the end of epoch `epoch`. Errors: missing or damaged.
  Result<Checkpoint> at_epoch(std::int64_t epoch) const;

 private:
  struct File {
    std::int64_t updates = 0;
    std::int64_t epoch = 0;
    bool whole_epoch = false;
    std::string path;
  };
  std::vector<File> list() const;  // newest first, judged by their names
  void remove_superseded(const std::string& newest) const;
  Status give_name(const std::string& unnamed, const std::string& path) const;
  bool is_at_rung(const File& file) const;

  const std::string directory_;
  const CheckpointsKept kept_;
  const std::optional<CheckpointFence> fence_;
};

}  // namespace fettle::trainer
