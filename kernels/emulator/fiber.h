// A fiber: code with its own stack that runs when the fiber is resumed, until it suspends itself;
// resumed again, it continues there. All fibers of one thread of the operating system take turns;
// none moves to another thread.
//
// The switch is Boost.Context's, by its lowest interface: boost::context::fiber also switches while
// it is created and destroyed, which cannot be announced to the sanitizers. Here every switch is
// announced.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>

namespace fettle::kernels::emulator {

class Fiber {
 public:
  // Runs `body(argument)` when first resumed. `body` never returns.
  Fiber(void (*body)(void*), void* argument);
  // Frees the stack of a fiber that does not run, without destroying the objects on it.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it suspends. Called on the thread's stack, never from a fiber.
  void resume();
  // Called from the fiber: returns to the caller of resume().
  void suspend();

 private:
  using Context = boost::context::detail::fcontext_t;

  static void start(boost::context::detail::transfer_t from);
  const void* bottom() const;

  void (*const body_)(void*);
  void* const argument_;
  boost::context::protected_fixedsize_stack stacks_;
  boost::context::stack_context stack_;
  Context context_;            // of the fiber while it does not run
  Context resumer_ = nullptr;  // of the thread while the fiber runs
  // For the address sanitizer: the thread's stack.
  [[maybe_unused]] const void* resumer_bottom_ = nullptr;
  [[maybe_unused]] std::size_t resumer_size_ = 0;
  // For the thread sanitizer.
  [[maybe_unused]] void* thread_state_ = nullptr;
  [[maybe_unused]] void* resumer_thread_state_ = nullptr;
};

}  // namespace fettle::kernels::emulator
