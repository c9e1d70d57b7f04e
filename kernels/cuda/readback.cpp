#include "kernels/cuda/readback.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/cuda/pinned.h"

namespace fettle::kernels::cuda {
namespace {

constexpr std::size_t kPlaces = kResultsBehind + 1;

class StreamReadback final : public Readback {
 public:
  StreamReadback(cudaStream_t stream, std::int64_t bytes) : stream_(stream) {
    for (std::size_t i = 0; i < kPlaces; ++i) places_.push_back(std::make_unique<Pinned>(bytes));
  }

  void enqueue(ConstBuffer from) override {
    CHECK(posted_ - taken_ < kPlaces, "at most kResultsBehind + 1 copies under way");
    Pinned& place = *places_[posted_++ % kPlaces];
    must_succeed(cudaMemcpyAsync(place.data(), from, static_cast<std::size_t>(place.bytes()),
                                 cudaMemcpyDeviceToHost, stream_));
    place.mark(stream_);
  }
  void take(void* to) override {
    CHECK(taken_ < posted_, "a copy is under way");
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

std::unique_ptr<Readback> make_readback(cudaStream_t stream, std::int64_t bytes) {
  return std::make_unique<StreamReadback>(stream, bytes);
}

}  // namespace fettle::kernels::cuda
