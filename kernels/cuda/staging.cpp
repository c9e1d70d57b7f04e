#include "kernels/cuda/staging.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/cuda/errors.h"

namespace fettle::kernels::cuda {
namespace {

constexpr std::int64_t kLeastBytes = 4096;
// Copies under way of about the same size, before one is waited for: two steps' of a few arrays.
constexpr int kMostOfASize = 8;

}  // namespace

struct Staging::Buffer {
  explicit Buffer(std::int64_t size) : bytes(size) {
    must_succeed(cudaMallocHost(&memory, static_cast<std::size_t>(size)));
    must_succeed(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
  }
  ~Buffer() {
    cudaEventDestroy(copied);
    cudaFreeHost(memory);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* memory = nullptr;
  std::int64_t bytes;
  cudaEvent_t copied = nullptr;
};

Staging::Staging() = default;

Staging::~Staging() {
  for (const auto& buffer : buffers_) cudaEventSynchronize(buffer->copied);
}

void Staging::upload(const void* from, void* to, std::int64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  Buffer& buffer = free_buffer(bytes);
  const auto size = static_cast<std::size_t>(bytes);
  std::memcpy(buffer.memory, from, size);
  must_succeed(cudaMemcpyAsync(to, buffer.memory, size, cudaMemcpyHostToDevice, stream));
  must_succeed(cudaEventRecord(buffer.copied, stream));
}

// Sizes are powers of two, so that a buffer is of use again. The buffer becomes the last used.
Staging::Buffer& Staging::free_buffer(std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, kLeastBytes))));
  int of_this_size = 0;
  auto found = buffers_.end();
  for (auto it = buffers_.begin(); it != buffers_.end() && found == buffers_.end(); ++it) {
    if ((*it)->bytes != size) continue;
    const cudaError_t state = cudaEventQuery((*it)->copied);
    if (state == cudaSuccess) {
      found = it;
    } else if (state != cudaErrorNotReady) {
      must_succeed(state);
    }
    ++of_this_size;
  }
  if (found == buffers_.end() && of_this_size >= kMostOfASize) {
    found = std::find_if(buffers_.begin(), buffers_.end(),
                         [&](const auto& buffer) { return buffer->bytes == size; });
    must_succeed(cudaEventSynchronize((*found)->copied));
  }
  if (found == buffers_.end()) {
    buffers_.push_back(std::make_unique<Buffer>(size));
  } else {
    std::rotate(found, std::next(found), buffers_.end());
  }
  return *buffers_.back();
}

}  // namespace fettle::kernels::cuda
