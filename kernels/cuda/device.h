// Device: one GPU as its backend uses it: a stream that all work is ordered on, memory, a workspace
// that operations share, and the launch configurations that were tuned for it.
//
// Belongs to one thread, as its backend and all its operations do.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/platform.h"
#include "kernels/cuda/pool.h"

namespace fettle::kernels::cuda {

class Device {
 public:
  // The first GPU that the process sees (CUDA_VISIBLE_DEVICES). Errors, in words: no GPU or no
  // driver, a driver that is too old, a GPU that is too old.
  static Result<std::unique_ptr<Device>> open();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  cudaStream_t stream() const { return stream_; }
  const DeviceIdentity& identity() const { return identity_; }
  int multiprocessors() const { return multiprocessors_; }

  // Zero at first. Errors: what was asked for, what is free, and what to do about it.
  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes);
  // The memory of this device that is handed out, and the most that ever was.
  std::int64_t used() const { return pool_.used(); }
  std::int64_t peak() const { return pool_.peak(); }

  // The workspace, which every operation may overwrite. An operation reserves what it needs while
  // it is created, and asks for the address in every call: it moves when the workspace grows.
  Status reserve_scratch(std::int64_t bytes);
  // At least `bytes`; grows if that was not reserved, and aborts if there is no memory for it.
  void* scratch(std::int64_t bytes);

  // What a library keeps for this device (its handle), opened by the first operation that asks.
  // `Library`: has `static Result<std::unique_ptr<Library>> open()`.
  template <class Library>
  Result<Library*> library() {
    std::shared_ptr<void>& opened = libraries_[typeid(Library)];
    if (opened == nullptr) {
      FETTLE_ASSIGN(auto made, Library::open());
      opened = std::move(made);
    }
    return static_cast<Library*>(opened.get());
  }

  // Threads of a block for the kernel of this name (folder/kernel): what was tuned for this GPU,
  // else `otherwise`.
  unsigned threads(std::string_view kernel, unsigned otherwise) const;
  void set_threads(std::string_view kernel, unsigned threads);

 private:
  explicit Device(std::int64_t piece_bytes) : pool_(piece_bytes) {}

  cudaStream_t stream_ = nullptr;
  DeviceIdentity identity_;
  int multiprocessors_ = 1;
  Pool pool_;
  // The last is the largest. Those before it stay: recorded graphs hold their addresses.
  std::vector<std::unique_ptr<Memory>> scratch_;
  std::int64_t scratch_bytes_ = 0;
  std::map<std::string, unsigned, std::less<>> threads_;
  std::map<std::type_index, std::shared_ptr<void>> libraries_;
};

}  // namespace fettle::kernels::cuda
