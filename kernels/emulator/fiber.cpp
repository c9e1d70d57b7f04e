#include "kernels/emulator/fiber.h"

#include <sys/mman.h>

#include "base/check.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace fettle::kernels::emulator {
namespace {

constexpr std::size_t kGuardBytes = 4096;
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kStackBytes = 256 * 1024;  // frames are larger then
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

// Whom a fiber's first instructions belong to, and where they came from: makecontext() passes only
// ints.
thread_local Fiber* starting = nullptr;
thread_local Fiber* before = nullptr;

}  // namespace

Fiber::Fiber() {
#ifdef __SANITIZE_THREAD__
  thread_state_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*body)(void*), void* argument) : body_(body), argument_(argument) {
  void* const mapped = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(mapped != MAP_FAILED, "no address space for a fiber's stack");
  stack_ = static_cast<std::byte*>(mapped);
  CHECK(mprotect(stack_, kGuardBytes, PROT_NONE) == 0, "mprotect failed");
  bottom_ = stack_ + kGuardBytes;
  size_ = kStackBytes;
  CHECK(getcontext(&context_) == 0, "getcontext failed");
  context_.uc_stack.ss_sp = stack_ + kGuardBytes;
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::start, 0);
#ifdef __SANITIZE_THREAD__
  thread_state_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(thread_state_);
#endif
  munmap(stack_, kGuardBytes + kStackBytes);
}

void Fiber::start() {
  Fiber* const self = starting;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(self->fake_stack_, &before->bottom_, &before->size_);
#endif
  self->body_(self->argument_);
  check_failed(__FILE__, __LINE__, "a fiber's body never returns", "");
}

void Fiber::switch_to(Fiber& next) {
  starting = &next;
  before = this;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.size_);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(next.thread_state_, 0);
#endif
  CHECK(swapcontext(&context_, &next.context_) == 0, "swapcontext failed");
#ifdef __SANITIZE_ADDRESS__
  // `before` is whoever came back here; the bounds of an operating system's stack are learnt so.
  __sanitizer_finish_switch_fiber(fake_stack_, &before->bottom_, &before->size_);
#endif
}

}  // namespace fettle::kernels::emulator
