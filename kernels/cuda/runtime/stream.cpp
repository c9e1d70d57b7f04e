#include "kernels/cuda/runtime/stream.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/event.h"
#include "kernels/cuda/runtime/pinned.h"

namespace fettle::kernels::cuda {
namespace {

class StreamGraph final : public Graph {
 public:
  StreamGraph(cudaStream_t stream, cudaGraphExec_t executable)
      : stream_(stream), executable_(executable) {}
  ~StreamGraph() override { cudaGraphExecDestroy(executable_); }
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;

  void launch() override { must_succeed(cudaGraphLaunch(executable_, stream_)); }

 private:
  const cudaStream_t stream_;
  const cudaGraphExec_t executable_;
};

class StreamEvent final : public kernels::Event {
 public:
  explicit StreamEvent(cudaStream_t stream) : stream_(stream) {}

  void record() override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    must_succeed(cudaStreamIsCapturing(stream_, &status));
    // CUDA refuses each flag where the other belongs.
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
  static constexpr std::size_t kPlaces = kResultsBehind + 1;

  const cudaStream_t stream_;
  std::vector<std::unique_ptr<Pinned>> places_;
  std::size_t posted_ = 0;
  std::size_t taken_ = 0;
};

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

std::unique_ptr<Graph> capture(cudaStream_t stream, const std::function<void()>& work) {
  // Other threads may allocate and wait meanwhile.
  must_succeed(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  cudaGraph_t graph = nullptr;
  must_succeed(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  must_succeed(cudaGraphInstantiate(&executable, graph, 0));
  must_succeed(cudaGraphDestroy(graph));
  return std::make_unique<StreamGraph>(stream, executable);
}

std::unique_ptr<kernels::Event> make_event(cudaStream_t stream) {
  return std::make_unique<StreamEvent>(stream);
}

std::unique_ptr<Readback> make_readback(cudaStream_t stream, std::int64_t bytes) {
  return std::make_unique<StreamReadback>(stream, bytes);
}

std::unique_ptr<Timeline> make_timeline(cudaStream_t stream) {
  return std::make_unique<StreamTimeline>(stream);
}

}  // namespace fettle::kernels::cuda
