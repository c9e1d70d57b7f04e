// The kernels' tests on a real GPU: what they allocate, and what lies on their stack, is memory
// that the GPU reads and writes, and the backend "cuda" is that of libfettle_cuda.so.
//
// operator new takes from one pinned block of host memory, in powers of two, from lists of blocks
// that were given back. cuDNN takes from there, too, and must not fail for it: when the block is
// used up, the rest is ordinary memory, and a kernel that reads it says so. With
// CUDA_LAUNCH_BLOCKING=1 the tests find their results when a call returns, as on a CPU. Not yet run
// on a GPU.
#include <cuda_runtime.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "kernels/aligned.h"
#include "kernels/backends/cuda/backend.h"

namespace {

constexpr std::size_t kBytes = std::size_t{2} << 30;
constexpr std::size_t kSmallest = 64;  // as AlignedArray promises

// Constant-initialised, because others allocate before main.
class PinnedHeap {
 public:
  void* take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (begin_ == nullptr) open();
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest) + kSmallest);
    Block*& free = free_[static_cast<std::size_t>(std::countr_zero(size))];
    Block* block = free;
    if (block != nullptr) {
      free = block->next;
    } else {
      if (used_ + size > kBytes) return take_elsewhere(bytes);
      block = reinterpret_cast<Block*>(begin_ + used_);
      used_ += size;
    }
    block->size = size;
    return reinterpret_cast<char*>(block) + kSmallest;
  }

  void give_back(void* memory) {
    if (memory == nullptr) return;
    if (!is_pinned(memory)) return std::free(memory);
    const std::scoped_lock lock(mutex_);
    auto* const block = reinterpret_cast<Block*>(static_cast<char*>(memory) - kSmallest);
    Block*& free = free_[static_cast<std::size_t>(std::countr_zero(block->size))];
    block->next = free;
    free = block;
  }

 private:
  struct Block {
    std::size_t size;
    Block* next;
  };

  bool is_pinned(const void* memory) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(begin_);
    return reinterpret_cast<std::uintptr_t>(memory) - begin < kBytes;
  }

  static void* take_elsewhere(std::size_t bytes) {
    const std::size_t whole = (std::max(bytes, kSmallest) + kSmallest - 1) / kSmallest * kSmallest;
    void* const memory = std::aligned_alloc(kSmallest, whole);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }

  void open() {
    void* memory = nullptr;
    const cudaError_t error = cudaMallocHost(&memory, kBytes);
    if (error != cudaSuccess) {
      std::fprintf(stderr, "kernels_gpu_test: no GPU to test: %s\n", cudaGetErrorString(error));
      std::_Exit(3);
    }
    begin_ = static_cast<char*>(memory);
    register_stack();
  }

  static void register_stack() {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    std::size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    // Its upper end is what tests use; the rest is not mapped yet.
    constexpr std::size_t kUsed = std::size_t{64} << 10;
    cudaHostRegister(static_cast<char*>(lowest) + size - kUsed, kUsed, cudaHostRegisterDefault);
  }

  std::mutex mutex_;
  char* begin_ = nullptr;
  std::size_t used_ = 0;
  std::array<Block*, 64> free_{};
};

constinit PinnedHeap heap;

}  // namespace

void* operator new(std::size_t bytes) { return heap.take(bytes); }
void* operator new(std::size_t bytes, std::align_val_t) { return heap.take(bytes); }
void operator delete(void* memory) noexcept { heap.give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { heap.give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { heap.give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  heap.give_back(memory);
}

namespace fettle::kernels {

// Instead of aligned.cpp's.
void* allocate_aligned(std::int64_t bytes) {
  return bytes == 0 ? nullptr : heap.take(static_cast<std::size_t>(bytes));
}
void free_aligned(void* pointer) { heap.give_back(pointer); }

Result<std::unique_ptr<Backend>> cuda_backend() { return make_backend("cuda", 1); }

}  // namespace fettle::kernels
