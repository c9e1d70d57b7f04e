#include "kernels/cuda/moment.h"

#include "kernels/cuda/errors.h"
#include "kernels/cuda/event.h"

namespace fettle::kernels::cuda {
namespace {

class StreamMoment final : public Moment {
 public:
  explicit StreamMoment(cudaStream_t stream) : stream_(stream) {}

  void mark() override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    must_succeed(cudaStreamIsCapturing(stream_, &status));
    // CUDA refuses each of the two where the other belongs.
    const unsigned flags =
        status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    must_succeed(cudaEventRecordWithFlags(event_.get(), stream_, flags));
  }
  void await() override { event_.hold_up(stream_); }
  double seconds_since(Moment& other) override {
    const auto before = static_cast<cudaEvent_t>(other.event());
    if (!is_reached(before) || !is_reached(event_.get())) return 0;
    return Event::seconds_between(before, event_.get());
  }
  void* event() override { return event_.get(); }

 private:
  const cudaStream_t stream_;
  Event event_;
};

}  // namespace

std::unique_ptr<Moment> make_moment(cudaStream_t stream) {
  return std::make_unique<StreamMoment>(stream);
}

}  // namespace fettle::kernels::cuda
