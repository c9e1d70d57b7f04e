#include "kernels/cuda/feed.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/event.h"
#include "kernels/cuda/pinned.h"

namespace fettle::kernels::cuda {
namespace {

struct Place {
  explicit Place(std::int64_t bytes) : host(bytes) {}
  Pinned host;
  std::unique_ptr<Memory> device;
  Event wanted;  // the work that reads the block could begin, but for the block
  Event there;
  Event read = Event::without_time();  // the work that reads it is done
};

class StreamFeed final : public Feed {
 public:
  static Result<std::unique_ptr<Feed>> create(Device& device, std::int64_t bytes) {
    auto made = std::make_unique<StreamFeed>(device.stream());
    for (auto& place : made->places_) {
      place = std::make_unique<Place>(bytes);
      FETTLE_ASSIGN(place->device, device.allocate(bytes));
      place->read.record(device.stream());  // what zeroes it is done by then
    }
    return std::unique_ptr<Feed>(std::move(made));
  }
  explicit StreamFeed(cudaStream_t compute) : compute_(compute) {
    must_succeed(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
  }
  ~StreamFeed() override {
    cudaStreamSynchronize(copies_);
    cudaStreamDestroy(copies_);
  }
  StreamFeed(const StreamFeed&) = delete;
  StreamFeed& operator=(const StreamFeed&) = delete;

  std::byte* next() override {
    Place& place = place_of(sent_);
    if (sent_ >= kPlaces) {
      place.there.wait();
      place.wanted.wait();
      waited_ += std::max(0.0, place.there.seconds_since(place.wanted));
    }
    return static_cast<std::byte*>(place.host.data());
  }

  const std::byte* send(std::int64_t bytes) override {
    Place& place = place_of(sent_);
    CHECK(bytes <= place.host.bytes(), "a block that is larger than its feed's");
    if (sent_ > 0) place_of(sent_ - 1).read.record(compute_);
    place.read.hold_up(copies_);
    must_succeed(cudaMemcpyAsync(place.device->data(), place.host.data(),
                                 static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, copies_));
    place.there.record(copies_);
    place.wanted.record(compute_);
    place.there.hold_up(compute_);
    ++sent_;
    return static_cast<const std::byte*>(place.device->data());
  }

  double waited() const override { return waited_; }

 private:
  Place& place_of(std::int64_t number) {
    return *places_[static_cast<std::size_t>(number % kPlaces)];
  }

  const cudaStream_t compute_;
  cudaStream_t copies_ = nullptr;
  std::array<std::unique_ptr<Place>, kPlaces> places_;
  std::int64_t sent_ = 0;
  double waited_ = 0;
};

}  // namespace

Result<std::unique_ptr<Feed>> make_feed(Device& device, std::int64_t bytes) {
  return StreamFeed::create(device, bytes);
}

}  // namespace fettle::kernels::cuda
