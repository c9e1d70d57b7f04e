#include "kernels/cuda/timeline.h"

#include <vector>

#include "kernels/cuda/errors.h"

namespace fettle::kernels::cuda {
namespace {

class StreamTimeline final : public Timeline {
 public:
  explicit StreamTimeline(cudaStream_t stream) : stream_(stream) { record(); }
  ~StreamTimeline() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  StreamTimeline(const StreamTimeline&) = delete;
  StreamTimeline& operator=(const StreamTimeline&) = delete;

  std::int64_t mark() override {
    record();
    return std::ssize(events_) - 1;
  }

  std::vector<double> seconds() override {
    std::vector<double> seconds;
    must_succeed(cudaEventSynchronize(events_.back()));
    for (cudaEvent_t event : events_) {
      float milliseconds = 0;
      must_succeed(cudaEventElapsedTime(&milliseconds, events_.front(), event));
      seconds.push_back(1e-3 * static_cast<double>(milliseconds));
    }
    return seconds;
  }

 private:
  void record() {
    must_succeed(cudaEventCreate(&events_.emplace_back()));
    must_succeed(cudaEventRecord(events_.back(), stream_));
  }

  const cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
};

}  // namespace

std::unique_ptr<Timeline> make_timeline(cudaStream_t stream) {
  return std::make_unique<StreamTimeline>(stream);
}

}  // namespace fettle::kernels::cuda
