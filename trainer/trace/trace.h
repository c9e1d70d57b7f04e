// Trace: start and duration of each part of a few training steps, as a file that Perfetto and
// chrome://tracing open (Chrome's "Trace Event Format", complete events).
//
// It has two rows: the parts on the host and, if a backend enqueues work for a device, the parts on
// the device: from the end of all earlier work until the part was done. No thread waits for that;
// the device records its times (kernels/profiling.h), and they are read at the end. A captured step
// has no parts.
// A profiler attached to the process (NVTX) receives the same parts, in every step. A span costs
// two branches if nothing is kept and no profiler is attached. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::trainer {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // Keeps `steps` optimiser steps, after warm-up steps distorted by first touches of memory. 0:
  // keeps nothing at all.
  Trace(std::int64_t rank, std::int64_t steps) : rank_(rank), steps_(steps) {}

  // Whether the current step is kept. A step that is not traced costs nothing more.
  bool is_on() const { return begun_ > kWarmUpSteps && !is_full(); }
  bool is_full() const { return begun_ > kWarmUpSteps + steps_; }
  bool keeps(bool always) const { return is_on() || (always && steps_ > 0); }
  void begin_step() { ++begun_; }

  // From here until detach() the parts are work of the backend that made these objects, either of
  // which may be null.
  void attach(std::unique_ptr<kernels::Timeline> timeline, std::unique_ptr<kernels::Ranges> ranges);
  // Waits for the device and takes its times.
  void detach();

  // Host time, and the index of the device's mark; -1: no mark.
  struct Instant {
    Clock::time_point host;
    std::int64_t device = -1;
  };
  Instant now();
  // Adds a part of a step: "forward". `detail`: an instance, "model.layers[3] (maxPool)", or "".
  void add(std::string_view part, std::string_view detail, const Instant& begin,
           const Instant& end);

  // Ranges of the attached backend; nullptr: no profiler is attached.
  kernels::Ranges* ranges() const { return ranges_.get(); }

  std::string to_json() const;
  // Errors: the file cannot be written.
  Status write(const std::string& path) const;

 private:
  static constexpr std::int64_t kWarmUpSteps = 3;

  struct Times {
    Clock::time_point begin;
    Clock::time_point end;
  };
  struct Event {
    std::string name;
    std::string category;
    Instant begin;
    Instant end;
    std::optional<Times> device;
  };
  Clock::time_point origin() const;

  const std::int64_t rank_;
  const std::int64_t steps_;
  std::int64_t begun_ = 0;
  std::vector<Event> events_;
  std::unique_ptr<kernels::Ranges> ranges_;
  std::unique_ptr<kernels::Timeline> timeline_;
  Clock::time_point device_origin_;  // of the timeline
  std::size_t attached_at_ = 0;      // earlier events are of other backends
};

// Attaches a backend to a trace until the end of the scope.
class TracedBackend {
 public:
  TracedBackend(Trace& trace, kernels::Backend& backend) : trace_(trace) {
    trace_.attach(trace_.keeps(true) ? backend.timeline() : nullptr, backend.ranges());
  }
  ~TracedBackend() { trace_.detach(); }
  TracedBackend(const TracedBackend&) = delete;
  TracedBackend& operator=(const TracedBackend&) = delete;

 private:
  Trace& trace_;
};

// A part that lasts until the end of the scope; does nothing if `trace` is null. `part` and
// `detail` must live as long.
class Span {
 public:
  // `always`: kept between the kept steps, too; for rare parts.
  Span(Trace* trace, std::string_view part, std::string_view detail = "", bool always = false)
      : trace_(trace), part_(part), detail_(detail) {
    if (trace_ == nullptr) return;
    if (trace_->ranges() != nullptr) name_range();
    kept_ = trace_->keeps(always);
    if (kept_) begin_ = trace_->now();
  }
  ~Span() {
    if (kept_) trace_->add(part_, detail_, begin_, trace_->now());
    if (named_) trace_->ranges()->pop();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  void name_range();

  Trace* const trace_;
  std::string_view part_;
  std::string_view detail_;
  bool kept_ = false;
  bool named_ = false;
  Trace::Instant begin_;
};

}  // namespace fettle::trainer
