#include "kernels/cuda/runtime/free_blocks.h"

#include <iterator>

namespace fettle::kernels::cuda {

void FreeBlocks::add_piece(std::byte* begin, std::int64_t bytes) {
  pieces_[begin] = bytes;
  give_back(begin, bytes);
}

std::byte* FreeBlocks::take(std::int64_t bytes) {
  auto best = sizes_.end();
  for (auto it = sizes_.begin(); it != sizes_.end(); ++it) {
    if (it->second >= bytes && (best == sizes_.end() || it->second < best->second)) best = it;
  }
  if (best == sizes_.end()) return nullptr;
  const auto [begin, available] = *best;
  sizes_.erase(best);
  if (available > bytes) sizes_[begin + bytes] = available - bytes;
  bytes_ -= bytes;
  return begin;
}

void FreeBlocks::give_back(std::byte* begin, std::int64_t bytes) {
  bytes_ += bytes;
  auto next = sizes_.lower_bound(begin);
  const bool joins_next =
      next != sizes_.end() && begin + bytes == next->first && !pieces_.contains(next->first);
  if (joins_next) {
    bytes += next->second;
    next = sizes_.erase(next);
  }
  if (next != sizes_.begin() && !pieces_.contains(begin)) {  // else `begin` begins a piece
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  sizes_[begin] = bytes;
}

std::map<std::byte*, std::int64_t> FreeBlocks::remove_whole_pieces() {
  std::map<std::byte*, std::int64_t> whole;
  for (auto it = sizes_.begin(); it != sizes_.end();) {
    const auto piece = pieces_.find(it->first);
    if (piece == pieces_.end() || piece->second != it->second) {  // not free from end to end
      ++it;
      continue;
    }
    whole.insert(*it);
    bytes_ -= it->second;
    pieces_.erase(piece);
    it = sizes_.erase(it);
  }
  return whole;
}

}  // namespace fettle::kernels::cuda
