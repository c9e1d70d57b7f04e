#include "kernels/cuda/moment.h"

#include "kernels/cuda/errors.h"

namespace fettle::kernels::cuda {
namespace {

class StreamMoment final : public Moment {
 public:
  explicit StreamMoment(cudaStream_t stream) : stream_(stream) {
    must_succeed(cudaEventCreate(&event_));
  }
  ~StreamMoment() override { cudaEventDestroy(event_); }
  StreamMoment(const StreamMoment&) = delete;
  StreamMoment& operator=(const StreamMoment&) = delete;

  void mark() override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    must_succeed(cudaStreamIsCapturing(stream_, &status));
    // CUDA refuses each of the two where the other belongs.
    const unsigned flags =
        status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    must_succeed(cudaEventRecordWithFlags(event_, stream_, flags));
  }
  void await() override { must_succeed(cudaStreamWaitEvent(stream_, event_, 0)); }
  double seconds_since(Moment& other) override {
    const auto before = static_cast<cudaEvent_t>(other.event());
    if (cudaEventQuery(before) == cudaErrorNotReady) return 0;
    if (cudaEventQuery(event_) == cudaErrorNotReady) return 0;
    float milliseconds = 0;
    must_succeed(cudaEventElapsedTime(&milliseconds, before, event_));
    return static_cast<double>(milliseconds) / 1e3;
  }
  void* event() override { return event_; }

 private:
  const cudaStream_t stream_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace

std::unique_ptr<Moment> make_moment(cudaStream_t stream) {
  return std::make_unique<StreamMoment>(stream);
}

}  // namespace fettle::kernels::cuda
