// Looks: which looks at objects are under way, and since when. A look that does not come back shows
// that its worker is stuck. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "control/clock.h"

namespace fettle::control {

class Looks {
 public:
  explicit Looks(Clock& clock) : clock_(clock) {}

  // One look, from here to the end of the scope.
  class Scope {
   public:
    explicit Scope(Looks& looks) : looks_(looks), began_(looks.begin()) {}
    ~Scope() { looks_.end(began_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Looks& looks_;
    const std::int64_t began_;
  };

  // For how long the oldest one has been under way, ms; 0 = none is.
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
