// Clock: the controllers' source of time, which the simulator replaces by a virtual one.
#pragma once

#include <cstdint>

namespace fettle::control {

class Clock {
 public:
  virtual ~Clock() = default;
  // Unix milliseconds; never goes back. Thread-safe.
  virtual std::int64_t now_ms() = 0;
};

// The machine's clock: the wall clock as it was when this object was made, plus steady time since.
// So a wall clock that is set during a run moves no deadline.
class SystemClock : public Clock {
 public:
  SystemClock();
  std::int64_t now_ms() override;

 private:
  std::int64_t offset_ms_;  // wall minus steady
};

}  // namespace fettle::control
