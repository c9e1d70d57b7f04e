#include "kernels/cuda/runtime/upload_buffers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/event.h"
#include "kernels/cuda/runtime/pinned.h"

namespace fettle::kernels::cuda {
namespace {

struct Place {
  explicit Place(std::int64_t bytes) : host(bytes) {}
  Pinned host;
  std::unique_ptr<Memory> device;
  Event needed;  // the work that reads the block could begin, except for the block
  Event copied;
  Event consumed = Event::without_time();  // the work that reads it is done
};

class StreamUploadBuffers final : public UploadBuffers {
 public:
  static Result<std::unique_ptr<UploadBuffers>> create(Device& device, std::int64_t bytes) {
    auto made = std::make_unique<StreamUploadBuffers>(device.stream());
    for (auto& place : made->places_) {
      place = std::make_unique<Place>(bytes);
      FETTLE_ASSIGN(place->device, device.allocate(bytes));
      place->consumed.record(device.stream());  // includes the zeroing of the place
    }
    return std::unique_ptr<UploadBuffers>(std::move(made));
  }
  explicit StreamUploadBuffers(cudaStream_t compute) : compute_(compute) {
    must_succeed(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
  }
  ~StreamUploadBuffers() override {
    cudaStreamSynchronize(copies_);
    cudaStreamDestroy(copies_);
  }
  StreamUploadBuffers(const StreamUploadBuffers&) = delete;
  StreamUploadBuffers& operator=(const StreamUploadBuffers&) = delete;

  std::byte* next() override {
    Place& place = place_of(sent_);
    if (sent_ >= kPlaces) {  // waits for the copy of the earlier block
      place.copied.synchronize();
      place.needed.synchronize();
      // Negative if the block had arrived before the GPU needed it.
      waited_ += std::max(0.0, place.copied.seconds_since(place.needed));
    }
    return static_cast<std::byte*>(place.host.data());
  }

  const std::byte* enqueue(std::int64_t bytes) override {
    Place& place = place_of(sent_);
    CHECK(bytes <= place.host.bytes(), "a block that is larger than its place");
    // All work that reads the previous block has been enqueued.
    if (sent_ > 0) place_of(sent_ - 1).consumed.record(compute_);

    // The copy waits for the work that last read this place.
    place.consumed.make_wait(copies_);
    must_succeed(cudaMemcpyAsync(place.device->data(), place.host.data(),
                                 static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, copies_));
    place.copied.record(copies_);

    // Work enqueued from now on waits for the copy; the two events measure how long.
    place.needed.record(compute_);
    place.copied.make_wait(compute_);
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

Result<std::unique_ptr<UploadBuffers>> make_upload_buffers(Device& device, std::int64_t bytes) {
  return StreamUploadBuffers::create(device, bytes);
}

}  // namespace fettle::kernels::cuda
