// Trace: when each part of a few training steps began and how long it took, as a file that Perfetto
// and chrome://tracing open (Chrome's "Trace Event Format", complete events).
//
// Two rows: what the host was at, and, where a backend enqueues work for a device, from when to
// when the device had the part: from the end of all work enqueued before it until it was done.
// No thread waits for that; the device notes its times (kernels/profiling.h), and they are read at
// the end. A captured step has no parts.
// A tool that watches the process (NVTX) is told of the same parts, in every step. A span costs two
// branches where nothing is kept and no tool watches. One thread.
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

  // Keeps `steps` optimiser steps, after some whose first touches of memory say nothing. 0: keeps
  // nothing at all.
  Trace(std::int64_t rank, std::int64_t steps) : rank_(rank), steps_(steps) {}

  // Whether what happens now is kept. A step that is not traced costs nothing more.
  bool is_on() const { return begun_ > kWarmUpSteps && !is_full(); }
  bool is_full() const { return begun_ > kWarmUpSteps + steps_; }
  bool keeps(bool always) const { return is_on() || (always && steps_ > 0); }
  void begin_step() { ++begun_; }

  // From here until detach() the parts are work of the backend that has just made these, either of
  // which may be null.
  void attach(std::unique_ptr<kernels::Timeline> timeline, std::unique_ptr<kernels::Ranges> ranges);
  // Waits for the device and takes its times.
  void detach();

  // By the host's clock, and which mark of the device's; -1: there is none.
  struct Instant {
    Clock::time_point host;
    std::int64_t device = -1;
  };
  Instant now();
  // What of a step: "forward". `detail`: which one, "model.layers[3] (maxPool)", or "".
  void add(std::string_view part, std::string_view detail, const Instant& begin,
           const Instant& end);

  // Those of the backend that is attached; nullptr: no tool watches.
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
  std::size_t attached_at_ = 0;      // events before it are not of this backend
};

// A trace's backend, from here to the end of its scope.
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

// A part, from here to the end of its scope, if `trace` is there. `part` and `detail` must live as
// long.
class Span {
 public:
  // `always`: also between the steps that are kept, for what is rare.
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
