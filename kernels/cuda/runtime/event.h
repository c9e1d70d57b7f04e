// cuda::Event: a place in a stream's order, with the time at which the GPU reached it, or, cheaper
// for the GPU, without. Belongs to the device's thread, as the streams do.
#pragma once

#include <utility>

#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels::cuda {

// Whether the GPU has reached `event`. Not having reached it is no error, but the runtime may
// record it as one, which the check of the next launch would find.
inline bool is_reached(cudaEvent_t event) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  must_succeed(state);
  return true;
}

class Event {
 public:
  Event() { must_succeed(cudaEventCreate(&event_)); }
  // Creates an event for waiting only: it has no time.
  static Event without_time() {
    Event event(nullptr);
    must_succeed(cudaEventCreateWithFlags(&event.event_, cudaEventDisableTiming));
    return event;
  }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;

  // Never called in a capture.
  void record(cudaStream_t stream) { must_succeed(cudaEventRecord(event_, stream)); }
  // Makes work that is enqueued on `stream` from now on wait until the event is reached.
  void make_wait(cudaStream_t stream) const {
    must_succeed(cudaStreamWaitEvent(stream, event_, 0));
  }
  // Blocks the host until the event is reached.
  void synchronize() const { must_succeed(cudaEventSynchronize(event_)); }
  // Seconds by the GPU's clock. Both events have been reached.
  double seconds_since(const Event& before) const { return seconds_between(before.event_, event_); }
  static double seconds_between(cudaEvent_t before, cudaEvent_t after) {
    float milliseconds = 0;
    must_succeed(cudaEventElapsedTime(&milliseconds, before, after));
    return static_cast<double>(milliseconds) / 1e3;
  }

  cudaEvent_t get() const { return event_; }

 private:
  explicit Event(cudaEvent_t event) : event_(event) {}

  cudaEvent_t event_ = nullptr;
};

}  // namespace fettle::kernels::cuda
