// Staging: copies from the host without waiting.
//
// CUDA copies from ordinary host memory only after all work enqueued before is done, so a step's
// batch would arrive when the GPU has run out of work. From pinned memory it copies in stream
// order. So uploads go through pinned buffers: the caller's memory is free at once, and a buffer
// when its copy is done. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/runtime/pinned.h"

namespace fettle::kernels::cuda {

class Staging {
 public:
  // Enqueues a copy of `bytes` from host memory, which may change when this returns.
  void upload(const void* from, void* to, std::int64_t bytes, cudaStream_t stream);

  // Permanently pinned bytes: at most eight buffers of each power of two up to 4 MiB.
  std::int64_t pinned_bytes() const;

 private:
  void upload_piece(const std::byte* from, std::byte* to, std::int64_t bytes, cudaStream_t stream);
  Pinned& free_buffer(std::int64_t bytes);

  std::vector<std::unique_ptr<Pinned>> buffers_;  // least recently used first
};

}  // namespace fettle::kernels::cuda
