// Trace: when each part of a few training steps began and how long it took, as a file that Perfetto
// and chrome://tracing open (Chrome's "Trace Event Format", complete events).
//
// Times are those of the host: what a part took there. A backend whose calls are orders to a device
// has to have carried them out when a span ends, or the span shows the ordering alone.
// A span costs one branch where nothing is traced. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fettle::trainer {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // Keeps `steps` optimiser steps, after some whose first touches of memory say nothing.
  Trace(std::int64_t rank, std::int64_t steps) : rank_(rank), steps_(steps) {}

  // Whether what happens now is kept. A step that is not traced costs nothing more.
  bool is_on() const { return begun_ > kWarmUpSteps && !is_full(); }
  bool is_full() const { return begun_ > kWarmUpSteps + steps_; }
  void begin_step() { ++begun_; }
  // Until what has been ordered is done: asked at the end of a span.
  void set_wait(std::function<void()> wait) { wait_ = std::move(wait); }
  void wait() const {
    if (wait_) wait_();
  }

  // What of a step: "forward". `detail`: which one, "model.layers[3] (maxPool)", or "".
  void add(std::string_view part, std::string_view detail, Clock::time_point begin,
           Clock::time_point end);

  std::string to_json() const;
  // Errors: the file cannot be written.
  Status write(const std::string& path) const;

 private:
  static constexpr std::int64_t kWarmUpSteps = 3;

  struct Event {
    std::string name;
    std::string category;
    Clock::time_point begin;
    Clock::time_point end;
  };

  const std::int64_t rank_;
  const std::int64_t steps_;
  std::int64_t begun_ = 0;
  std::function<void()> wait_;
  std::vector<Event> events_;
};

// From here to the end of its scope, if `trace` is there. `part` and `detail` must live as long.
class Span {
 public:
  // `always`: also between the steps that are kept, for what is rare.
  Span(Trace* trace, std::string_view part, std::string_view detail = "", bool always = false)
      : trace_(trace != nullptr && (always || trace->is_on()) ? trace : nullptr) {
    if (trace_ == nullptr) return;
    part_ = part;
    detail_ = detail;
    begin_ = Trace::Clock::now();
  }
  ~Span() {
    if (trace_ == nullptr) return;
    trace_->wait();
    trace_->add(part_, detail_, begin_, Trace::Clock::now());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Trace* const trace_;
  std::string_view part_;
  std::string_view detail_;
  Trace::Clock::time_point begin_;
};

}  // namespace fettle::trainer
