// A fiber: a stack of its own that runs until it switches away, and goes on there when it is
// switched to. All fibers of one thread of the operating system take turns; none moves to another.
// The sanitizers are told of every switch.
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace fettle::kernels::emulator {

class Fiber {
 public:
  // The stack that calls this; for switching back to.
  Fiber();
  // Runs `body(argument)` when first switched to. `body` never returns.
  Fiber(void (*body)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From this fiber, which must be the one that runs, to `next`.
  void switch_to(Fiber& next);

 private:
  static void start();

  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  ucontext_t context_{};
  std::byte* stack_ = nullptr;    // of its own, with a guard page below; else nullptr
  const void* bottom_ = nullptr;  // as the address sanitizer names it
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;    // the address sanitizer's
  void* thread_state_ = nullptr;  // the thread sanitizer's
};

}  // namespace fettle::kernels::emulator
