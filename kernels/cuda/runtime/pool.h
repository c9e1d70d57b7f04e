// Pool: a GPU's memory in large pieces, handed out in blocks. cudaMalloc takes tens of microseconds
// to milliseconds and waits for the device; a piece is asked for rarely, a block often.
//
// Blocks begin at multiples of 256 bytes and are padded to them. A block that is given back is the
// next one's at once: safe, because all work on it is enqueued on one stream, and branches of that
// (Device::run_beside) are joined before. Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/result.h"
#include "kernels/cuda/runtime/free_blocks.h"

namespace fettle::kernels::cuda {

class Pool {
 public:
  // `piece_bytes`: the least to ask the device for; 0: every block is asked for by itself.
  // `share_bytes`: the most to hold of the device, where others use it too; absent: all of it.
  explicit Pool(std::int64_t piece_bytes, std::optional<std::int64_t> share_bytes = std::nullopt)
      : piece_bytes_(piece_bytes), share_bytes_(share_bytes) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // What a block of `bytes` takes.
  static std::int64_t padded(std::int64_t bytes);

  // Errors: what was asked for, what is free, and what to do about it.
  Result<void*> take(std::int64_t bytes);
  void give_back(void* block);

  // Gives the device the pieces of which no block is out: what plans were timed on would otherwise
  // stay with this process for ever. The device's work must be done.
  void release_unused();

  // In blocks that are out, padding included; and the most that ever was.
  std::int64_t used() const { return used_; }
  std::int64_t peak() const { return peak_; }
  // What can still be taken, if no other process takes it, within the share.
  std::int64_t available() const;

 private:
  Result<void*> take_from_device(std::int64_t bytes);
  // Asks the device for a piece with at least `least` bytes.
  Status add_piece(std::int64_t least);

  // Of the share, in pieces or blocks that the device has not given yet.
  std::int64_t left_of_share() const;

  const std::int64_t piece_bytes_;
  const std::optional<std::int64_t> share_bytes_;
  std::set<void*> pieces_;
  FreeBlocks free_;  // of the pieces
  std::map<void*, std::int64_t> taken_;
  std::int64_t held_ = 0;  // of the device: in pieces, or in blocks without pieces
  std::int64_t used_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace fettle::kernels::cuda
