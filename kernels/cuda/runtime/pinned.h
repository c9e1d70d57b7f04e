// Pinned: host memory that the GPU reads and writes directly, and an event that tells when it is
// done. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/event.h"
#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels::cuda {

class Pinned {
 public:
  explicit Pinned(std::int64_t bytes) : bytes_(bytes) {
    must_succeed(cudaMallocHost(&memory_, static_cast<std::size_t>(bytes)));
  }
  ~Pinned() {
    cudaEventSynchronize(done_.get());
    cudaFreeHost(memory_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  void* data() { return memory_; }
  std::int64_t bytes() const { return bytes_; }

  // Makes is_done() and wait() refer to the work enqueued on `stream` so far.
  void mark(cudaStream_t stream) { done_.record(stream); }
  bool is_done() const { return is_reached(done_.get()); }
  void wait() const { done_.synchronize(); }

 private:
  const std::int64_t bytes_;
  void* memory_ = nullptr;
  Event done_ = Event::without_time();
};

}  // namespace fettle::kernels::cuda
