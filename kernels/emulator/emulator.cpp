#include "kernels/emulator/emulator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "kernels/emulator/cuda_runtime.h"
#include "kernels/emulator/fiber.h"
#include "kernels/emulator/job_scheduler.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local uint3 blockDim{};
constinit thread_local uint3 gridDim{};
// NOLINTEND(readability-identifier-naming)

namespace fettle::kernels::emulator {

constinit thread_local Traffic traffic{};

namespace {

std::string place(const SourcePlace& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line()) + " (" +
         where.function_name() + ")";
}

bool same_place(const SourcePlace& a, const SourcePlace& b) {
  return a.line() == b.line() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

// ---- Order -------------------------------------------------------------------------------------

struct OrderSetting {
  Order order = Order::kRising;
  std::uint64_t seed = 0;
};

[[noreturn]] void refuse_order(std::string_view text) {
  std::fprintf(stderr,
               "FETTLE_EMULATOR_ORDER is \"%s\", expected rising, falling, shuffled:SEED or "
               "interleaved:SEED\n",
               std::string(text).c_str());
  std::exit(2);
}

OrderSetting order_from_environment() {
  const char* const value = std::getenv("FETTLE_EMULATOR_ORDER");
  const std::string_view text = value == nullptr ? "rising" : value;
  constexpr std::string_view kShuffled = "shuffled:", kInterleaved = "interleaved:";
  if (text == "rising") return {};
  if (text == "falling") return {Order::kFalling, 0};
  const bool interleaved = text.starts_with(kInterleaved);
  if (!interleaved && !text.starts_with(kShuffled)) refuse_order(text);
  OrderSetting setting{interleaved ? Order::kInterleaved : Order::kShuffled, 0};
  const char* const end = text.data() + text.size();
  const std::size_t name = (interleaved ? kInterleaved : kShuffled).size();
  const auto [rest, error] = std::from_chars(text.data() + name, end, setting.seed);
  if (error != std::errc() || rest != end) refuse_order(text);
  return setting;
}

thread_local OrderSetting order_setting = order_from_environment();
thread_local std::uint64_t shuffles = 0;

void arrange(std::vector<unsigned>& items) {
  if (order_setting.order == Order::kFalling) std::reverse(items.begin(), items.end());
  if (order_setting.order == Order::kRising || order_setting.order == Order::kFalling) return;
  Random random(order_setting.seed, ++shuffles);
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

std::vector<unsigned> arranged(unsigned count) {
  std::vector<unsigned> items(count);
  std::iota(items.begin(), items.end(), 0U);
  arrange(items);
  return items;
}

uint3 coordinates(unsigned index, const uint3& extent) {
  return {index % extent.x, index / extent.x % extent.y, index / extent.x / extent.y};
}

// The blocks of a grid, in the order in which they begin.
class Blocks {
 public:
  explicit Blocks(const dim3& grid) : blocks_(arranged(grid.x * grid.y * grid.z)) {}
  std::size_t count() const { return blocks_.size(); }
  std::optional<unsigned> next() {
    return next_ == blocks_.size() ? std::nullopt : std::optional(blocks_[next_++]);
  }

 private:
  const std::vector<unsigned> blocks_;
  std::size_t next_ = 0;
};

// ---- A multiprocessor --------------------------------------------------------------------------

enum class State : std::uint8_t { kNew, kReady, kAtBarrier, kAtShuffle, kAtBallot, kDone };

struct Thread {
  State state = State::kNew;
  Fiber* fiber = nullptr;  // the fiber on which it waits
  SourcePlace where;
  unsigned mask = 0;
  unsigned source = 0;
  std::uint64_t value = 0;  // the operand; then the result
};

// Runs one block at a time: every thread until it waits, then the threads whose wait is over.
class Multiprocessor {
 public:
  // Runs blocks until none is left.
  void run(const Launch& launch, Blocks& blocks);
  std::uint64_t wait(State state, const Thread& call);
  std::byte* dynamic_shared() { return shared_.data(); }
  unsigned current() const { return current_; }

 private:
  void run_block();
  void run_ready();
  void take_new_threads();
  static void fiber_body(void* self) { static_cast<Multiprocessor*>(self)->take_new_threads(); }
  void resume(Fiber& fiber);
  void enter(unsigned thread);

  bool release_warps();
  bool release_lanes_with(unsigned thread);
  bool release_barrier();
  [[noreturn]] void fail_stuck() const;
  [[noreturn]] void fail(const std::string& what) const;

  const Launch* launch_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<unsigned> ready_;  // in their order of execution
  std::size_t next_ = 0;         // of ready_
  unsigned current_ = 0;
  Fiber* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<std::byte> shared_;
};

void Multiprocessor::run(const Launch& launch, Blocks& blocks) {
  if (launch_ != nullptr) fail("a kernel launches a kernel, which is not emulated");
  launch_ = &launch;
  const auto as_uint3 = [](const dim3& d) { return uint3{d.x, d.y, d.z}; };
  blockDim = as_uint3(launch.threads);
  gridDim = as_uint3(launch.blocks);
  try {
    while (const auto block = blocks.next()) {
      blockIdx = coordinates(*block, gridDim);
      run_block();
    }
  } catch (const std::bad_alloc&) {
    // A test would catch it, and then fail because the next launch finds half-done work.
    fail("this process gets no memory for the stacks of the block's threads");
  }
  launch_ = nullptr;
}

void Multiprocessor::run_block() {
  threads_.assign(blockDim.x * blockDim.y * blockDim.z, Thread());
  shared_.assign(launch_->shared_bytes, std::byte{0xFF});
  ready_ = arranged(static_cast<unsigned>(threads_.size()));
  for (;;) {
    run_ready();
    if (std::all_of(threads_.begin(), threads_.end(),
                    [](const Thread& thread) { return thread.state == State::kDone; })) {
      return;
    }
    if (!release_warps() && !release_barrier()) fail_stuck();
    JobScheduler::let_others_run();
    ready_.clear();
    for (unsigned i = 0; i < threads_.size(); ++i) {
      if (threads_[i].state == State::kReady) ready_.push_back(i);
    }
    arrange(ready_);
  }
}

void Multiprocessor::run_ready() {
  next_ = 0;
  while (next_ < ready_.size()) {
    const Thread& thread = threads_[ready_[next_]];
    if (thread.state != State::kNew) {
      enter(ready_[next_++]);
      resume(*thread.fiber);
      continue;
    }
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>(&Multiprocessor::fiber_body, this));
      idle_.push_back(fibers_.back().get());
    }
    Fiber* const fiber = idle_.back();
    idle_.pop_back();
    resume(*fiber);
  }
}

void Multiprocessor::resume(Fiber& fiber) {
  running_ = &fiber;
  fiber.resume();
}

// The body of every fiber: runs one new thread after the other, until one of them waits.
void Multiprocessor::take_new_threads() {
  Fiber* const self = running_;
  for (;;) {
    while (next_ < ready_.size() && threads_[ready_[next_]].state == State::kNew) {
      enter(ready_[next_++]);
      launch_->thread();
      threads_[current_].state = State::kDone;
    }
    idle_.push_back(self);
    self->suspend();
  }
}

void Multiprocessor::enter(unsigned thread) {
  current_ = thread;
  threadIdx = coordinates(thread, blockDim);
}

std::uint64_t Multiprocessor::wait(State state, const Thread& call) {
  Thread& thread = threads_[current_];
  thread = call;
  thread.state = state;
  thread.fiber = running_;
  if (state != State::kAtBarrier && (call.mask >> (current_ % kWarpLanes) & 1U) == 0) {
    fail("the mask of a warp operation does not name the lane that calls it, at " +
         place(call.where));
  }
  running_->suspend();
  return threads_[current_].value;
}

bool Multiprocessor::release_warps() {
  bool any = false;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    const State state = threads_[i].state;
    if (state == State::kAtShuffle || state == State::kAtBallot) any |= release_lanes_with(i);
  }
  return any;
}

// Releases the lanes that `thread` waits for, if all of them wait at the same place.
bool Multiprocessor::release_lanes_with(unsigned thread) {
  const Thread call = threads_[thread];
  const unsigned first = thread - thread % kWarpLanes;
  std::array<std::uint64_t, kWarpLanes> given;
  given.fill(~std::uint64_t{0});
  std::uint64_t ballot = 0;
  const auto each_lane = [&](auto&& visit) {
    for (unsigned lane = 0; lane < kWarpLanes && first + lane < threads_.size(); ++lane) {
      Thread& other = threads_[first + lane];
      const bool named = (call.mask >> lane & 1U) != 0;
      if (named && other.state != State::kDone && !visit(lane, other)) return false;
    }
    return true;
  };
  const bool all_here = each_lane([&](unsigned lane, const Thread& other) {
    given[lane] = other.value;
    ballot |= (other.value & 1U) << lane;
    return other.state == call.state && other.mask == call.mask &&
           same_place(other.where, call.where);
  });
  if (!all_here) return false;
  each_lane([&](unsigned, Thread& other) {
    other.value = call.state == State::kAtBallot ? ballot : given[other.source % kWarpLanes];
    other.state = State::kReady;
    return true;
  });
  return true;
}

bool Multiprocessor::release_barrier() {
  const Thread* first = nullptr;
  std::uint64_t held = 0;
  for (const Thread& thread : threads_) {
    if (thread.state == State::kDone) continue;
    if (first == nullptr) first = &thread;
    if (thread.state != State::kAtBarrier || !same_place(thread.where, first->where)) return false;
    held += thread.value;
  }
  for (Thread& thread : threads_) {
    if (thread.state == State::kDone) continue;
    thread.value = held;
    thread.state = State::kReady;
  }
  return true;
}

void Multiprocessor::fail_stuck() const {
  std::string what = "threads wait for others that wait elsewhere:";
  std::vector<bool> told(threads_.size());
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Thread& thread = threads_[i];
    if (told[i] || thread.state == State::kDone) continue;
    std::size_t count = 0;
    for (std::size_t j = i; j < threads_.size(); ++j) {
      const Thread& other = threads_[j];
      if (other.state != thread.state || other.mask != thread.mask ||
          !same_place(other.where, thread.where)) {
        continue;
      }
      told[j] = true;
      ++count;
    }
    char mask[32];
    std::snprintf(mask, sizeof mask, "mask %08x", thread.mask);
    what += "\n  " + std::to_string(count) + " (thread " + std::to_string(i) + " first) at " +
            (thread.state == State::kAtBarrier ? "a barrier"
                                               : std::string("a warp operation, ") + mask) +
            ", " + place(thread.where);
  }
  const auto done = std::count_if(threads_.begin(), threads_.end(),
                                  [](const Thread& t) { return t.state == State::kDone; });
  fail(what + "\n  " + std::to_string(done) + " have ended");
}

void Multiprocessor::fail(const std::string& what) const {
  std::fprintf(stderr,
               "emulator: in the kernel launched at %s, block (%u, %u, %u) of %u threads: %s\n",
               place(launch_->where).c_str(), blockIdx.x, blockIdx.y, blockIdx.z,
               static_cast<unsigned>(threads_.size()), what.c_str());
  std::abort();
}

Multiprocessor& multiprocessor() {
  thread_local Multiprocessor mine;
  return mine;
}

// Runs several blocks at once, each on its own multiprocessor.
void run_interleaved(const Launch& launch, Blocks& blocks) {
  constexpr std::size_t kUnderWay = 4;
  const OrderSetting setting = order_setting;
  const std::uint64_t stream = ++shuffles;
  const auto count = static_cast<unsigned>(std::min(kUnderWay, blocks.count()));
  JobScheduler::of_this_thread().run(count, setting.seed, stream, [&](unsigned job) {
    if (job > 0) {  // another thread, whose shuffles depend on this launch alone
      order_setting = setting;
      shuffles = stream << 32 | std::uint64_t{job} << 24;
    }
    multiprocessor().run(launch, blocks);
  });
}

}  // namespace

void set_order(Order order, std::uint64_t seed) {
  order_setting = {order, seed};
  shuffles = 0;
}

int check_shape(const Launch& launch, std::size_t shared_limit) {
  const dim3 &blocks = launch.blocks, &threads = launch.threads;
  const std::uint64_t thread_count = std::uint64_t{threads.x} * threads.y * threads.z;
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || thread_count == 0 || thread_count > 1024 ||
      threads.z > 64 || blocks.x > 0x7FFFFFFF || blocks.y > 65535 || blocks.z > 65535) {
    return cudaErrorInvalidConfiguration;
  }
  return launch.shared_bytes > shared_limit ? cudaErrorInvalidValue : cudaSuccess;
}

void run(const Launch& launch) {
  Blocks blocks(launch.blocks);
  if (order_setting.order == Order::kInterleaved && blocks.count() > 1) {
    return run_interleaved(launch, blocks);
  }
  multiprocessor().run(launch, blocks);
}

void let_blocks_run() { JobScheduler::let_others_run(); }

int barrier(bool predicate, SourcePlace where) {
  Thread call;
  call.where = where;
  call.value = predicate ? 1 : 0;
  return static_cast<int>(multiprocessor().wait(State::kAtBarrier, call));
}

std::uint64_t shuffle(unsigned mask, std::uint64_t value, unsigned source, SourcePlace where) {
  Thread call;
  call.where = where;
  call.mask = mask;
  call.source = source;
  call.value = value;
  return multiprocessor().wait(State::kAtShuffle, call);
}

unsigned ballot(unsigned mask, bool predicate, SourcePlace where) {
  Thread call;
  call.where = where;
  call.mask = mask;
  call.value = predicate ? 1 : 0;
  return static_cast<unsigned>(multiprocessor().wait(State::kAtBallot, call));
}

unsigned lane() { return multiprocessor().current() % kWarpLanes; }

std::byte* dynamic_shared() { return multiprocessor().dynamic_shared(); }

}  // namespace fettle::kernels::emulator
