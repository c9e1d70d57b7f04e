#include "kernels/emulator/fiber.h"

#include "base/check.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace fettle::kernels::emulator {
namespace {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kStackBytes = 256 * 1024;  // frames are larger there
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

}  // namespace

Fiber::Fiber(void (*body)(void*), void* argument)
    : body_(body),
      argument_(argument),
      stacks_(kStackBytes),
      stack_(stacks_.allocate()),
      context_(make_fcontext(stack_.sp, kStackBytes, &Fiber::start)) {
#ifdef __SANITIZE_THREAD__
  thread_state_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(thread_state_);
#endif
#ifdef __SANITIZE_ADDRESS__
  // Frames that never return leave their red zones to the next owner of these addresses.
  __asan_unpoison_memory_region(bottom(), kStackBytes);
#endif
  stacks_.deallocate(stack_);
}

const void* Fiber::bottom() const { return static_cast<const std::byte*>(stack_.sp) - kStackBytes; }

void Fiber::start(transfer_t from) {
  Fiber* const self = static_cast<Fiber*>(from.data);
  self->resumer_ = from.fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &self->resumer_bottom_, &self->resumer_size_);
#endif
  self->body_(self->argument_);
  check_failed(__FILE__, __LINE__, "a fiber's body never returns", "");
}

void Fiber::resume() {
#ifdef __SANITIZE_ADDRESS__
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, bottom(), kStackBytes);
#endif
#ifdef __SANITIZE_THREAD__
  resumer_thread_state_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_state_, 0);
#endif
  context_ = jump_fcontext(context_, this).fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef __SANITIZE_ADDRESS__
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, resumer_bottom_, resumer_size_);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(resumer_thread_state_, 0);
#endif
  resumer_ = jump_fcontext(resumer_, nullptr).fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack, &resumer_bottom_, &resumer_size_);
#endif
}

}  // namespace fettle::kernels::emulator
