// Device: one GPU as its backend uses it: a stream for all work, memory, and a workspace that
// operations share.
//
// Belongs to one thread, as do its backend and all its operations.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/runtime/machine.h"
#include "kernels/cuda/runtime/platform.h"
#include "kernels/cuda/runtime/pool.h"

namespace fettle::kernels::cuda {

// Returns 8-4-4-4-12 digits, as nvidia-smi prints them behind "GPU-" or "MIG-".
std::string uuid_text(const cudaUUID_t& uuid);

// Whether the first GPU that the process sees (CUDA_VISIBLE_DEVICES) can run the compiled code.
// Errors: check_machine's (machine.h).
Status find_gpu();

class Device {
 public:
  // Opens the GPU that find_gpu() found, or returns its error.
  static Result<std::unique_ptr<Device>> open();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The stream on which work is enqueued now.
  cudaStream_t stream() const { return forked_ ? branch_stream_ : stream_; }

  // Enqueues both so that the GPU may do them at the same time: neither may write what the other
  // reads or writes. With FETTLE_CUDA_BRANCHES=1, in a graph that is being captured, `branch`
  // becomes a separate branch, forked here and joined before this returns; otherwise it comes
  // first. The results are the same bits. `branch` has its own workspace, and no counters.
  void run_beside(const std::function<void()>& branch, const std::function<void()>& meanwhile);
  const DeviceIdentity& identity() const { return identity_; }
  const MachineFacts& facts() const { return facts_; }
  int multiprocessors() const { return multiprocessors_; }

  // Allocates memory that is zero at first. Errors: the requested and the free size, and a remedy.
  // Aborts while a graph is captured: work in a graph has run once before, and has all its memory.
  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes);
  // Calls Pool::release_unused(); waits for the device.
  void release_unused();
  // Allocated memory of this device, and its maximum so far.
  std::int64_t used() const { return pool_.used(); }
  std::int64_t peak() const { return pool_.peak(); }
  std::int64_t available() const { return pool_.available(); }

  // The workspace, which every operation may overwrite. An operation reserves its need while it is
  // created, and gets the address in every call: it moves when the workspace grows.
  Status reserve_scratch(std::int64_t bytes);
  // The same for the operation's work in a branch.
  Status reserve_branch_scratch(std::int64_t bytes);
  // Returns at least `bytes`; grows if they were not reserved, and aborts if memory runs out.
  void* scratch(std::int64_t bytes);

  // Returns at least `count` numbers that are 0 between kernels: a kernel that counts in them
  // resets them (last_block.cuh). Operations share and reserve them like the workspace.
  Status reserve_counters(std::int64_t count);
  unsigned* counters(std::int64_t count);

  // Returns a library's state for this device (its handle), opened by the first operation that
  // needs it. `Library` has `static Result<std::unique_ptr<Library>> open()`.
  template <class Library>
  Result<Library*> library() {
    std::shared_ptr<void>& opened = libraries_[typeid(Library)];
    if (opened == nullptr) {
      FETTLE_ASSIGN(auto made, Library::open());
      opened = std::move(made);
    }
    return static_cast<Library*>(opened.get());
  }

  // While true, nothing is allocated: blocks have no address, and requested sizes are only summed.
  // Operations created meanwhile cannot be run.
  void set_measuring(bool measuring);
  Workspace measured() const { return measured_; }
  bool is_measuring() const { return measuring_; }

 private:
  Device(std::int64_t piece_bytes, std::optional<std::int64_t> share_bytes)
      : pool_(piece_bytes, share_bytes) {}

  cudaStream_t stream_ = nullptr;
  cudaStream_t branch_stream_ = nullptr;
  bool is_capturing() const;

  bool branches_ = false;   // FETTLE_CUDA_BRANCHES=1
  bool in_branch_ = false;  // work enqueued now belongs to a branch
  bool forked_ = false;     // and goes to branch_stream_
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  DeviceIdentity identity_;
  MachineFacts facts_;
  int multiprocessors_ = 1;
  Pool pool_;
  // The last block is the largest. Earlier blocks stay: recorded graphs hold their addresses.
  struct Growing {
    std::vector<std::unique_ptr<Memory>> blocks;
    std::int64_t bytes = 0;
  };
  Status grow(Growing& memory, std::int64_t bytes);
  std::int64_t& measured_bytes(const Growing& memory);
  void* grown(Growing& memory, std::int64_t bytes);
  Growing scratch_, branch_scratch_, counters_;
  bool measuring_ = false;
  Workspace measured_;
  std::map<std::type_index, std::shared_ptr<void>> libraries_;
};

}  // namespace fettle::kernels::cuda
