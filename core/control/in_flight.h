// InFlight: the reconciles in flight, and when each of them last made progress, so that a stuck
// worker shows as a reconcile that does not return. A long plan over a slow API server is not
// stuck: each of its calls that ends is progress. Thread-safe; a thread has one reconcile at a
// time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "core/control/clock.h"

namespace fettle::control {

class InFlight {
 public:
  explicit InFlight(Clock& clock) : clock_(clock) {}

  // One reconcile of the calling thread, from here to the end of the scope.
  class Scope {
   public:
    explicit Scope(InFlight& in_flight) : in_flight_(in_flight) { in_flight_.begin(); }
    ~Scope() { in_flight_.end(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    InFlight& in_flight_;
  };

  // Records progress of the calling thread's reconcile. Does nothing in a thread without one.
  void progress() {
    const std::lock_guard lock(mutex_);
    const auto mine = since_.find(std::this_thread::get_id());
    if (mine != since_.end()) mine->second = clock_.now_ms();
  }

  // Time since the slowest reconcile last made progress, ms; 0 = none is in flight.
  std::int64_t oldest_ms() const {
    const std::lock_guard lock(mutex_);
    const auto oldest =
        std::ranges::min_element(since_, {}, [](const auto& one) { return one.second; });
    return oldest == since_.end() ? 0 : clock_.now_ms() - oldest->second;
  }

 private:
  void begin() {
    const std::lock_guard lock(mutex_);
    since_[std::this_thread::get_id()] = clock_.now_ms();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    since_.erase(std::this_thread::get_id());
  }

  Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::thread::id, std::int64_t> since_;
};

}  // namespace fettle::control
