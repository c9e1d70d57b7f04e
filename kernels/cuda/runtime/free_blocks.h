// FreeBlocks: what is free of a pool's pieces, by address. Best fit, neighbours joined.
//
// Blocks are never joined beyond a piece. Two pieces may lie side by side, but CUDA refuses to copy
// a range that spans two allocations. Knows addresses alone and never touches the memory.
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace fettle::kernels::cuda {

class FreeBlocks {
 public:
  // A new piece, all of it free.
  void add_piece(std::byte* begin, std::int64_t bytes);
  // The beginning of the smallest block that has `bytes`, which are taken; nullptr: none has.
  std::byte* take(std::int64_t bytes);
  // What take() returned, with its size.
  void give_back(std::byte* begin, std::int64_t bytes);

  // The pieces that are free as a whole, with their sizes. They are no pieces from now on.
  std::map<std::byte*, std::int64_t> remove_whole_pieces();

  std::int64_t bytes() const { return bytes_; }

 private:
  std::map<const std::byte*, std::int64_t> pieces_;  // their sizes, by where each begins
  std::map<std::byte*, std::int64_t> sizes_;         // by where a block begins
  std::int64_t bytes_ = 0;                           // of all blocks
};

}  // namespace fettle::kernels::cuda
