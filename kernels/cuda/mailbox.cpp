#include "kernels/cuda/mailbox.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/cuda/pinned.h"

namespace fettle::kernels::cuda {
namespace {

constexpr std::size_t kPlaces = kResultsBehind + 1;

class StreamMailbox final : public Mailbox {
 public:
  StreamMailbox(cudaStream_t stream, std::int64_t bytes) : stream_(stream) {
    for (std::size_t i = 0; i < kPlaces; ++i) places_.push_back(std::make_unique<Pinned>(bytes));
  }

  void post(ConstBuffer from) override {
    CHECK(posted_ - taken_ < kPlaces, "no more values on their way than a mailbox holds");
    Pinned& place = *places_[posted_++ % kPlaces];
    must_succeed(cudaMemcpyAsync(place.data(), from, static_cast<std::size_t>(place.bytes()),
                                 cudaMemcpyDeviceToHost, stream_));
    place.mark(stream_);
  }
  void take(void* to) override {
    CHECK(taken_ < posted_, "a value is on its way");
    Pinned& place = *places_[taken_++ % kPlaces];
    place.wait();
    std::memcpy(to, place.data(), static_cast<std::size_t>(place.bytes()));
  }

 private:
  const cudaStream_t stream_;
  std::vector<std::unique_ptr<Pinned>> places_;
  std::size_t posted_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace

std::unique_ptr<Mailbox> make_mailbox(cudaStream_t stream, std::int64_t bytes) {
  return std::make_unique<StreamMailbox>(stream, bytes);
}

}  // namespace fettle::kernels::cuda
