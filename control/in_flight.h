// InFlight: the reconciles in flight and the times at which they began, so that a stuck worker
// shows as a reconcile that does not return. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "control/clock.h"

namespace fettle::control {

class InFlight {
 public:
  explicit InFlight(Clock& clock) : clock_(clock) {}

  // One reconcile, from here to the end of the scope.
  class Scope {
   public:
    explicit Scope(InFlight& in_flight) : in_flight_(in_flight), began_(in_flight.begin()) {}
    ~Scope() { in_flight_.end(began_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    InFlight& in_flight_;
    const std::int64_t began_;
  };

  // Age of the oldest one, ms; 0 = there is none.
  std::int64_t oldest_ms() const {
    const std::lock_guard lock(mutex_);
    return began_.empty() ? 0 : clock_.now_ms() - *began_.begin();
  }

 private:
  std::int64_t begin() {
    const std::lock_guard lock(mutex_);
    return *began_.insert(clock_.now_ms());
  }
  void end(std::int64_t began) {
    const std::lock_guard lock(mutex_);
    began_.erase(began_.find(began));
  }

  Clock& clock_;
  mutable std::mutex mutex_;
  std::multiset<std::int64_t> began_;
};

}  // namespace fettle::control
