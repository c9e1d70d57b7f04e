// A CUDA device that is emulated on the CPU: runs kernels that g++ compiled as C++.
//
// Every thread of a block is a fiber. A thread runs until it waits (a barrier, a warp operation) or
// ends, then the next one does, in the order that FETTLE_EMULATOR_ORDER says: `rising` (default),
// `falling`, `shuffled:SEED` or `interleaved:SEED`. The order is that of threads and of blocks, and
// a shuffled one is another at every barrier, so a forgotten barrier gives different results in
// different orders. A kernel in which no thread waits costs no switch at all.
//
// Blocks run one after the other, except with `interleaved`: then four are under way, which take
// turns (turns.h) at barriers, warp operations, atomics and fences, as the seed has it, and threads
// are shuffled. That shows a block that counts on another having ended, or not having begun.
//
// A kernel that a GPU would hang in, or whose behaviour CUDA leaves open, ends the program with a
// sentence: a warp operation without a lane that its mask names, a barrier that some threads wait
// at while others wait elsewhere. What CUDA reports as an error is reported as that error.
//
// Memory, streams and graphs are in runtime.cpp. Usable from several threads at once: each has its
// own emulated multiprocessor. Host code reaches all of this by cuda_runtime.h and
// kernels/cuda/device_code/launch.h; only tests include this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/source_place.h"
#include "kernels/emulator/vector_types.h"

namespace fettle::kernels::emulator {

inline constexpr unsigned kWarpLanes = 32;
// What a block may have without asking, and what it may ask for, as on an H100.
inline constexpr std::size_t kSharedBytes = 48 * 1024;
inline constexpr std::size_t kSharedBytesOptIn = 227 * 1024;

// What the host's calls say about the machine. Few multiprocessors, so that kernels whose grid is a
// multiple of their number go round more than once.
struct Machine {
  int count_error = 0;  // what cudaGetDeviceCount returns: a cudaError_t
  int devices = 1;
  int driver_version = 13000;
  int major = 9;  // compute capability
  int minor = 0;
  int multiprocessors = 4;
  std::size_t memory = std::size_t{4} << 30;
  int properties_error = 0;  // what cudaGetDeviceProperties returns
};
// For tests; of the whole process. Returns what it was.
Machine set_machine(const Machine& machine);
Machine machine();

// A kernel that is to run: its shape, its body with all arguments bound, and who launched it.
struct Launch {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes = 0;
  std::function<void()> thread;
  SourcePlace where;
};
// Runs all of it, now, on this thread.
void run(const Launch& launch);

// Whether a GPU would take a launch of this shape; a cudaError_t. `shared_limit`: what was asked
// for with cudaFuncSetAttribute.
int check_shape(const Launch& launch, std::size_t shared_limit);

// When work on streams is done (streams.h), from FETTLE_EMULATOR_STREAMS (nothing, `late` or
// `others-first`) unless a test sets it: at once, when the host waits for it, or so that the
// streams that the host does not wait for go first.
enum class Streams : std::uint8_t { kAtOnce, kLate, kOthersFirst };
void set_streams(Streams streams);
Streams streams_in_use();

// Which GPU this thread sees, as if it were the only one; at first the one that comes first in
// CUDA_VISIBLE_DEVICES. So several threads, or processes, have a GPU each.
void use_device(int number);
int device_in_use();

// The order of threads and blocks, from FETTLE_EMULATOR_ORDER unless a test sets it.
enum class Order : std::uint8_t { kRising, kFalling, kShuffled, kInterleaved };
// A shuffled order starts with the seed again.
void set_order(Order order, std::uint64_t seed = 0);

// Bytes that the packs of kernels moved (kernels/cuda/device_code/packs.h), of blocks that this
// thread ran.
struct Traffic {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};
extern constinit thread_local Traffic traffic;

// ---- What device code is made of (device_functions.h) -------------------------------------------

// Waits for all threads of the block that have not ended. Returns how many predicates held.
int barrier(bool predicate, SourcePlace where);
// Waits for the lanes in `mask`, which call the same at the same place. Returns the value that
// `source` gave; of a lane that is not there all bits are set (NaN), because CUDA leaves it open.
std::uint64_t shuffle(unsigned mask, std::uint64_t value, unsigned source, SourcePlace where);
// Where blocks are interleaved: another block may run before this returns.
void let_blocks_run();
// The lanes in `mask` whose predicate holds.
unsigned ballot(unsigned mask, bool predicate, SourcePlace where);
unsigned lane();
// This block's; 16-byte aligned, filled with NaN when a block begins.
std::byte* dynamic_shared();

}  // namespace fettle::kernels::emulator
