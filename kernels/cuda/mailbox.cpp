#include "kernels/cuda/mailbox.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/cuda/errors.h"

namespace fettle::kernels::cuda {
namespace {

class StreamMailbox final : public Mailbox {
 public:
  StreamMailbox(cudaStream_t stream, std::int64_t bytes)
      : stream_(stream), bytes_(static_cast<std::size_t>(bytes)) {
    for (Slot& slot : slots_) {
      must_succeed(cudaMallocHost(&slot.memory, bytes_));
      must_succeed(cudaEventCreateWithFlags(&slot.arrived, cudaEventDisableTiming));
    }
  }
  ~StreamMailbox() override {
    for (Slot& slot : slots_) {
      cudaEventSynchronize(slot.arrived);
      cudaEventDestroy(slot.arrived);
      cudaFreeHost(slot.memory);
    }
  }
  StreamMailbox(const StreamMailbox&) = delete;
  StreamMailbox& operator=(const StreamMailbox&) = delete;

  void post(ConstBuffer from) override {
    CHECK(posted_ - taken_ < slots_.size(), "no more values on their way than a mailbox holds");
    Slot& slot = slots_[posted_++ % slots_.size()];
    must_succeed(cudaMemcpyAsync(slot.memory, from, bytes_, cudaMemcpyDeviceToHost, stream_));
    must_succeed(cudaEventRecord(slot.arrived, stream_));
  }
  void take(void* to) override {
    CHECK(taken_ < posted_, "a value is on its way");
    Slot& slot = slots_[taken_++ % slots_.size()];
    must_succeed(cudaEventSynchronize(slot.arrived));
    std::memcpy(to, slot.memory, bytes_);
  }

 private:
  struct Slot {
    void* memory = nullptr;
    cudaEvent_t arrived = nullptr;
  };

  cudaStream_t stream_;
  const std::size_t bytes_;
  std::array<Slot, kResultsBehind + 1> slots_;
  std::size_t posted_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace

std::unique_ptr<Mailbox> make_mailbox(cudaStream_t stream, std::int64_t bytes) {
  return std::make_unique<StreamMailbox>(stream, bytes);
}

}  // namespace fettle::kernels::cuda
