#include "kernels/cuda/timeline.h"

#include <vector>

#include "kernels/cuda/event.h"

namespace fettle::kernels::cuda {
namespace {

class StreamTimeline final : public Timeline {
 public:
  explicit StreamTimeline(cudaStream_t stream) : stream_(stream) { record(); }

  std::int64_t mark() override {
    record();
    return std::ssize(events_) - 1;
  }

  std::vector<double> seconds() override {
    std::vector<double> seconds;
    events_.back().synchronize();
    for (const Event& event : events_) seconds.push_back(event.seconds_since(events_.front()));
    return seconds;
  }

 private:
  void record() { events_.emplace_back().record(stream_); }

  const cudaStream_t stream_;
  std::vector<Event> events_;
};

}  // namespace

std::unique_ptr<Timeline> make_timeline(cudaStream_t stream) {
  return std::make_unique<StreamTimeline>(stream);
}

}  // namespace fettle::kernels::cuda
