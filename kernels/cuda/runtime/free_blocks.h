// FreeBlocks: the free parts of a pool's pieces, by address. Best fit, neighbours joined.
//
// Blocks are never joined beyond a piece. Two pieces may lie side by side, but CUDA refuses to copy
// a range that spans two allocations. Handles addresses only and never touches the memory. Belongs
// to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace fettle::kernels::cuda {

class FreeBlocks {
 public:
  // Adds a new piece, all of it free.
  void add_piece(std::byte* begin, std::int64_t bytes);
  // Takes `bytes` from the smallest sufficient block and returns their beginning; nullptr: no block
  // is large enough.
  std::byte* take(std::int64_t bytes);
  // Frees a block of take(), given with its size.
  void give_back(std::byte* begin, std::int64_t bytes);

  // Removes and returns the pieces that are entirely free, with their sizes.
  std::map<std::byte*, std::int64_t> remove_whole_pieces();

  std::int64_t bytes() const { return bytes_; }

 private:
  std::map<const std::byte*, std::int64_t> pieces_;  // sizes by beginning
  std::map<std::byte*, std::int64_t> sizes_;         // of free blocks, by beginning
  std::int64_t bytes_ = 0;                           // of all blocks
};

}  // namespace fettle::kernels::cuda
