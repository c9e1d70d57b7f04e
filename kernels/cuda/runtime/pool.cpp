#include "kernels/cuda/runtime/pool.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "kernels/cuda/runtime/errors.h"

namespace fettle::kernels::cuda {
namespace {

std::string megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

}  // namespace

std::int64_t Pool::padded(std::int64_t bytes) {
  constexpr std::int64_t kPadding = 256;
  return std::max<std::int64_t>((bytes + kPadding - 1) / kPadding, 1) * kPadding;
}

Pool::~Pool() {
  CHECK(taken_.empty(), "memory outlives its device");
  for (void* const piece : pieces_) cudaFree(piece);
}

Result<void*> Pool::take(std::int64_t bytes) {
  CHECK(bytes >= 0, "a negative size");
  const std::int64_t size = padded(bytes);
  void* block = nullptr;
  if (piece_bytes_ == 0) {
    FETTLE_ASSIGN(block, take_from_device(bytes));  // unpadded: sanitizers see accesses behind it
  } else {
    block = free_.take(size);
    if (block == nullptr) {
      FETTLE_TRY(add_piece(size));
      block = free_.take(size);  // never nullptr: the new piece has at least `size` bytes
    }
  }
  if (piece_bytes_ == 0) held_ += size;  // otherwise add_piece() has counted the piece
  taken_[block] = size;
  used_ += size;
  peak_ = std::max(peak_, used_);
  return block;
}

Status Pool::add_piece(std::int64_t least) {
  std::int64_t bytes = std::max(least, piece_bytes_);
  auto piece = take_from_device(bytes);
  if (!piece.ok()) {
    bytes = least;  // not a whole piece, perhaps, but enough
    piece = take_from_device(bytes);
  }
  if (!piece.ok()) return piece.error();
  pieces_.insert(piece.value());
  held_ += bytes;
  free_.add_piece(static_cast<std::byte*>(piece.value()), bytes);
  return success();
}

void Pool::release_unused() {
  for (const auto& [piece, bytes] : free_.remove_whole_pieces()) {
    must_succeed(cudaFree(piece));
    pieces_.erase(piece);
    held_ -= bytes;
  }
}

std::int64_t Pool::available() const {
  std::size_t of_device = 0, total = 0;
  must_succeed(cudaMemGetInfo(&of_device, &total));
  return free_.bytes() + std::min(static_cast<std::int64_t>(of_device), left_of_share());
}

std::int64_t Pool::left_of_share() const {
  if (!share_bytes_) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(0, *share_bytes_ - held_);
}

// Beyond its share this process fails, so that its neighbours on the card do not: most ways to
// share a GPU enforce no limit.
Result<void*> Pool::take_from_device(std::int64_t bytes) {
  if (bytes > left_of_share()) {
    return invalid("out of memory: this trial's part of the GPU has no " + megabytes(bytes) +
                   " more: of its " + megabytes(*share_bytes_) + ", " +
                   megabytes(left_of_share() + free_.bytes()) +
                   " are free; a smaller training.maxPerWorker needs less, a larger "
                   "trial.gpu.fraction or trial.gpu.memory has more");
  }
  void* memory = nullptr;
  // At least a byte: taken_ needs a distinct address for an empty block, too.
  const cudaError_t error =
      cudaMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  if (error == cudaSuccess) return memory;
  cudaGetLastError();  // not sticky, and no other call should see it
  if (error != cudaErrorMemoryAllocation) return status_of(error, "allocating GPU memory").error();
  std::size_t free = 0, total = 0;
  must_succeed(cudaMemGetInfo(&free, &total));
  return invalid("the GPU has no " + megabytes(bytes) + " more: of its " +
                 megabytes(static_cast<std::int64_t>(total)) + ", " +
                 megabytes(static_cast<std::int64_t>(free) + free_.bytes()) + " are free, and " +
                 megabytes(used_) +
                 " are in use by this process; a smaller training.maxPerWorker needs less");
}

void Pool::give_back(void* block) {
  const auto found = taken_.find(block);
  CHECK(found != taken_.end(), "a block that is not of this pool");
  const std::int64_t size = found->second;
  taken_.erase(found);
  used_ -= size;
  if (piece_bytes_ == 0) {
    must_succeed(cudaFree(block));
    held_ -= size;
  } else {
    free_.give_back(static_cast<std::byte*>(block), size);
  }
}

}  // namespace fettle::kernels::cuda
