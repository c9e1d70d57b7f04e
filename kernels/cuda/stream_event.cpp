#include "kernels/cuda/stream_event.h"

#include "kernels/cuda/errors.h"
#include "kernels/cuda/event.h"

namespace fettle::kernels::cuda {
namespace {

class StreamEvent final : public kernels::Event {
 public:
  explicit StreamEvent(cudaStream_t stream) : stream_(stream) {}

  void record() override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    must_succeed(cudaStreamIsCapturing(stream_, &status));
    // CUDA refuses each of the two where the other belongs.
    const unsigned flags =
        status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    must_succeed(cudaEventRecordWithFlags(event_.get(), stream_, flags));
  }
  void wait() override { event_.make_wait(stream_); }
  double seconds_since(kernels::Event& other) override {
    const auto before = static_cast<cudaEvent_t>(other.handle());
    if (!is_reached(before) || !is_reached(event_.get())) return 0;
    return cuda::Event::seconds_between(before, event_.get());
  }
  void* handle() override { return event_.get(); }

 private:
  const cudaStream_t stream_;
  cuda::Event event_;
};

}  // namespace

std::unique_ptr<kernels::Event> make_event(cudaStream_t stream) {
  return std::make_unique<StreamEvent>(stream);
}

}  // namespace fettle::kernels::cuda
