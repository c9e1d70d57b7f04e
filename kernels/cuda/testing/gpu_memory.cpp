// Memory for the kernels' tests on a real GPU: the tests' allocations and stack are memory that the
// GPU reads and writes, and the backend "cuda" is that of libfettle_cuda.so.
//
// operator new takes from pieces of pinned host memory, in powers of two, from lists of freed
// blocks. A piece is pinned when the previous piece is used up: pinning takes seconds a gigabyte,
// and several processes do it at once. cuDNN allocates from there, too, and must not fail for it:
// when the last piece is used up, the rest is ordinary memory. A kernel that reads it ends the
// process, so the first such block is noted. With CUDA_LAUNCH_BLOCKING=1 the tests find their
// results when a call returns, as on a CPU. Not yet run on a GPU.
#include <cuda_runtime.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "kernels/aligned.h"
#include "kernels/backends/cuda/backend.h"

namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 20;
constexpr std::size_t kPieces = 4;
constexpr std::size_t kSmallest = 64;  // as AlignedArray promises

// Constant-initialised, because others allocate before main.
class PinnedHeap {
 public:
  void* take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (count_ == 0) open();
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest) + kSmallest);
    Block*& free = free_[static_cast<std::size_t>(std::countr_zero(size))];
    Block* block = free;
    if (block != nullptr) {
      free = block->next;
    } else {
      if (size > kPieceBytes) return take_elsewhere(bytes);
      if (used_ + size > kPieceBytes && !add_piece()) return take_elsewhere(bytes);
      block = reinterpret_cast<Block*>(pieces_[count_ - 1] + used_);
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
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return std::any_of(pieces_.begin(), pieces_.end(), [&](const char* piece) {
      return piece != nullptr && address - reinterpret_cast<std::uintptr_t>(piece) < kPieceBytes;
    });
  }

  static void* take_elsewhere(std::size_t bytes) {
    if (!noted_.exchange(true)) {
      std::fprintf(
          stderr,
          "note: kernels_gpu_test: %zu bytes are not pinned, as what is allocated from now "
          "on: the GPU may not read them\n",
          bytes);
    }
    const std::size_t whole = (std::max(bytes, kSmallest) + kSmallest - 1) / kSmallest * kSmallest;
    void* const memory = std::aligned_alloc(kSmallest, whole);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }

  void open() {
    if (!add_piece()) fail("no GPU to test", cudaGetLastError());
    register_stack();
  }

  // The remainder of the last piece stays unused.
  bool add_piece() {
    void* memory = nullptr;
    if (count_ == kPieces || cudaMallocHost(&memory, kPieceBytes) != cudaSuccess) return false;
    pieces_[count_++] = static_cast<char*>(memory);
    used_ = 0;
    return true;
  }

  [[noreturn]] static void fail(const char* what, cudaError_t error) {
    std::fprintf(stderr, "kernels_gpu_test: %s: %s\n", what, cudaGetErrorString(error));
    std::_Exit(3);
  }

  static void register_stack() {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    std::size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    // Tests use its upper end; the rest is not mapped yet.
    constexpr std::size_t kUsed = std::size_t{64} << 10;
    const cudaError_t error =
        cudaHostRegister(static_cast<char*>(lowest) + size - kUsed, kUsed, cudaHostRegisterDefault);
    // Otherwise every test with a value on its stack would end its process.
    if (error != cudaSuccess) fail("the GPU cannot be shown the stack", error);
  }

  static inline std::atomic<bool> noted_ = false;

  std::mutex mutex_;
  std::array<char*, kPieces> pieces_{};
  std::size_t count_ = 0;  // of pieces
  std::size_t used_ = 0;   // of the last piece
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

// Replaces aligned.cpp's.
void* allocate_aligned(std::int64_t bytes) {
  return bytes == 0 ? nullptr : heap.take(static_cast<std::size_t>(bytes));
}
void free_aligned(void* pointer) { heap.give_back(pointer); }

Result<std::unique_ptr<Backend>> cuda_backend() { return make_backend("cuda", 1); }

}  // namespace fettle::kernels
