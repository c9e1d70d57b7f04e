// The only place below the programs that reads a clock.
#include "core/control/clock.h"

#include <chrono>

namespace fettle::control {

namespace {

template <class C>
std::int64_t milliseconds_of() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(C::now().time_since_epoch()).count();
}

}  // namespace

SystemClock::SystemClock()
    : offset_ms_(milliseconds_of<std::chrono::system_clock>() -
                 milliseconds_of<std::chrono::steady_clock>()) {}

std::int64_t SystemClock::now_ms() {
  return offset_ms_ + milliseconds_of<std::chrono::steady_clock>();
}

}  // namespace fettle::control
