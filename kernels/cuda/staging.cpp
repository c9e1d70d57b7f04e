#include "kernels/cuda/staging.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fettle::kernels::cuda {
namespace {

constexpr std::int64_t kLeastBytes = 4096;
// Copies of about the same size that are under way before one is waited for: a few arrays of two
// steps.
constexpr std::ptrdiff_t kMostOfASize = 8;

}  // namespace

void Staging::upload(const void* from, void* to, std::int64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  Pinned& buffer = free_buffer(bytes);
  const auto size = static_cast<std::size_t>(bytes);
  std::memcpy(buffer.data(), from, size);
  must_succeed(cudaMemcpyAsync(to, buffer.data(), size, cudaMemcpyHostToDevice, stream));
  buffer.mark(stream);
}

// Sizes are powers of two, so that a buffer is of use again. It becomes the last used.
Pinned& Staging::free_buffer(std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, kLeastBytes))));
  const auto of_this_size = [&](const auto& buffer) { return buffer->bytes() == size; };
  auto found = std::find_if(buffers_.begin(), buffers_.end(), [&](const auto& buffer) {
    return of_this_size(buffer) && buffer->is_done();
  });
  if (found == buffers_.end() &&
      std::count_if(buffers_.begin(), buffers_.end(), of_this_size) >= kMostOfASize) {
    found = std::find_if(buffers_.begin(), buffers_.end(), of_this_size);
    (*found)->wait();
  }
  if (found == buffers_.end()) {
    buffers_.push_back(std::make_unique<Pinned>(size));
  } else {
    std::rotate(found, std::next(found), buffers_.end());
  }
  return *buffers_.back();
}

}  // namespace fettle::kernels::cuda
