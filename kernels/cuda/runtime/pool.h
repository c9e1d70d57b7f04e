// Pool: a GPU's memory in large pieces, handed out in blocks. cudaMalloc takes tens of microseconds
// to milliseconds and waits for the device; pieces are allocated rarely, blocks often.
//
// Blocks begin at multiples of 256 bytes and are padded to them. A freed block is reused at once,
// which is safe because all work on it is enqueued on one stream, and branches of that
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
  // `piece_bytes`: minimum size of an allocation from the device; 0: every block is a separate
  // allocation. `share_bytes`: maximum to hold of a shared device; nullopt: all of it.
  explicit Pool(std::int64_t piece_bytes, std::optional<std::int64_t> share_bytes = std::nullopt)
      : piece_bytes_(piece_bytes), share_bytes_(share_bytes) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Returns the size that a block of `bytes` takes.
  static std::int64_t padded(std::int64_t bytes);

  // Errors: the requested and the free size, and a remedy.
  Result<void*> take(std::int64_t bytes);
  void give_back(void* block);

  // Returns unused pieces to the device: the arrays for timing plans would otherwise stay with this
  // process for ever. The device's work must be done.
  void release_unused();

  // Bytes in blocks that are handed out, padding included, and their maximum so far.
  std::int64_t used() const { return used_; }
  std::int64_t peak() const { return peak_; }
  // Bytes that can still be taken within the share, if no other process takes them.
  std::int64_t available() const;

 private:
  Result<void*> take_from_device(std::int64_t bytes);
  // Allocates a piece of at least `least` bytes from the device.
  Status add_piece(std::int64_t least);

  // Bytes of the share that have not been allocated from the device.
  std::int64_t left_of_share() const;

  const std::int64_t piece_bytes_;
  const std::optional<std::int64_t> share_bytes_;
  std::set<void*> pieces_;
  FreeBlocks free_;  // of the pieces
  std::map<void*, std::int64_t> taken_;
  std::int64_t held_ = 0;  // bytes of the device, in pieces or separate blocks
  std::int64_t used_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace fettle::kernels::cuda
