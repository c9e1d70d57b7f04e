// Faults: where the simulation crashes its controllers.
//
// Every write of the controllers (to the store or to the runs) passes through before_write() and
// after_write(). A crash is thrown there as Crash and caught by the simulation, which drops the
// Manager and makes a new one, as a restart does. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace fettle::sim {

struct Crash {};

class Faults {
 public:
  // Crashes at the n-th write from now (1 = the next), before or after it takes effect.
  void crash_at(std::int64_t n, bool after) {
    crash_at_ = writes_ + n;
    after_ = after;
  }

  // Calls `happens` at each write: it may let time pass, like a slow API server.
  void on_write(std::function<void()> happens) { happens_ = std::move(happens); }

  void before_write() {
    ++writes_;
    if (happens_) happens_();
    if (writes_ == crash_at_ && !after_) crash();
  }
  void after_write() {
    if (writes_ == crash_at_ && after_) crash();
  }

  // Returns the number of attempted writes since the beginning.
  std::int64_t writes() const { return writes_; }
  std::int64_t crashes() const { return crashes_; }

 private:
  [[noreturn]] void crash() {
    crash_at_ = 0;
    ++crashes_;
    throw Crash{};
  }

  std::int64_t writes_ = 0;
  std::int64_t crash_at_ = 0;  // 0 = never
  std::int64_t crashes_ = 0;
  bool after_ = false;
  std::function<void()> happens_;
};

}  // namespace fettle::sim
