#include "kernels/cuda/runtime/staging.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace fettle::kernels::cuda {
namespace {

constexpr std::int64_t kLeastBytes = 4096;
// The largest buffer. Weights and checkpoints of gigabytes pass through a few of these, in pieces.
constexpr std::int64_t kMostPinned = std::int64_t{4} << 20;
// Maximum copies of about the same size under way without a wait: a few arrays of two steps.
constexpr std::ptrdiff_t kMostOfASize = 8;

}  // namespace

void Staging::upload(const void* from, void* to, std::int64_t bytes, cudaStream_t stream) {
  for (std::int64_t begin = 0; begin < bytes; begin += kMostPinned) {
    upload_piece(static_cast<const std::byte*>(from) + begin, static_cast<std::byte*>(to) + begin,
                 std::min(kMostPinned, bytes - begin), stream);
  }
}

std::int64_t Staging::pinned_bytes() const {
  std::int64_t sum = 0;
  for (const auto& buffer : buffers_) sum += buffer->bytes();
  return sum;
}

void Staging::upload_piece(const std::byte* from, std::byte* to, std::int64_t bytes,
                           cudaStream_t stream) {
  Pinned& buffer = free_buffer(bytes);
  const auto size = static_cast<std::size_t>(bytes);
  std::memcpy(buffer.data(), from, size);
  must_succeed(cudaMemcpyAsync(to, buffer.data(), size, cudaMemcpyHostToDevice, stream));
  buffer.mark(stream);
}

// Returns a free buffer, now the last used. Sizes are powers of two, so that buffers can be reused.
Pinned& Staging::free_buffer(std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, kLeastBytes))));
  const auto of_this_size = [&](const auto& buffer) { return buffer->bytes() == size; };
  auto found = std::find_if(buffers_.begin(), buffers_.end(), [&](const auto& buffer) {
    return of_this_size(buffer) && buffer->is_done();
  });
  if (found == buffers_.end() &&
      std::count_if(buffers_.begin(), buffers_.end(), of_this_size) >= kMostOfASize) {
    // The least recently used: its copy ends first.
    found = std::find_if(buffers_.begin(), buffers_.end(), of_this_size);
    (*found)->wait();
  }
  if (found == buffers_.end()) {  // all of this size are in use, and more are allowed
    buffers_.push_back(std::make_unique<Pinned>(size));
  } else {
    std::rotate(found, std::next(found), buffers_.end());
  }
  return *buffers_.back();
}

}  // namespace fettle::kernels::cuda
