// ServerClock: the API server's clock, estimated from the answers to this process's calls.
//
// Creations, deletions and conditions carry times of the control plane, so "now" must be of the
// same clock: on a node whose own clock is minutes ahead, a pod would be past its grace period as
// soon as it was deleted. All code that judges or writes times uses this clock, so that all times
// of a Study come from one clock. It goes back only if the control plane's clock does, or before
// the first answer.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/control/clock.h"
#include "kube/client/call_made.h"
#include "kube/client/clock_offset.h"

namespace fettle::kubernetes {

class ServerClock final : public control::Clock {
 public:
  // `own`, this process's clock, must outlive it.
  explicit ServerClock(control::Clock& own) : own_(own) {}

  std::int64_t now_ms() override { return own_.now_ms() + offset_.ms(); }

  // Call as soon as the call has ended.
  void note(const kube::CallMade& call) {
    if (call.date_ms == 0) return;
    const auto took = std::chrono::ceil<std::chrono::milliseconds>(call.took);
    const std::int64_t answered_ms = own_.now_ms();
    offset_.note(call.date_ms, answered_ms - took.count(), answered_ms);
  }

 private:
  control::Clock& own_;
  kube::ClockOffset offset_;
};

}  // namespace fettle::kubernetes
