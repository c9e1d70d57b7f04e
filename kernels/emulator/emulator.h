// A CUDA device that is emulated on the CPU: runs kernels that g++ compiled as C++.
//
// Every thread of a block is a fiber. A thread runs until it waits (a barrier, a warp operation) or
// ends, then the next thread does, in the order that FETTLE_EMULATOR_ORDER sets: `rising`
// (default), `falling`, `shuffled:SEED` or `interleaved:SEED`. The order applies to threads and to
// blocks, and a shuffled order changes at every barrier, so a forgotten barrier gives different
// results in different orders. A kernel in which no thread waits costs no switch at all.
//
// Blocks run one after the other, except with `interleaved`: then four are under way, which take
// turns (job_scheduler.h) at barriers, warp operations, atomics and fences, as the seed decides,
// and threads are shuffled. This exposes a block that relies on another having ended, or not having
// begun.
//
// A kernel that would hang on a GPU, or whose behaviour CUDA leaves open, ends the program with a
// message: a warp operation without a lane that its mask names, or a barrier at which some threads
// wait while others wait elsewhere. Errors that CUDA reports are reported as the same error.
//
// Memory, streams and graphs are in runtime.cpp. Usable from several threads at once: each has its
// own emulated multiprocessor. Host code reaches all of this through cuda_runtime.h and
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
// Shared memory of a block without an opt-in, and with one, as on an H100.
inline constexpr std::size_t kSharedBytes = 48 * 1024;
inline constexpr std::size_t kSharedBytesOptIn = 227 * 1024;

// The emulated machine as the host's calls report it. Few multiprocessors, so that kernels whose
// grid is a multiple of their number loop more than once.
struct Machine {
  int count_error = 0;  // returned by cudaGetDeviceCount: a cudaError_t
  int devices = 1;
  int driver_version = 13000;
  int major = 9;  // compute capability
  int minor = 0;
  int multiprocessors = 4;
  std::size_t memory = std::size_t{4} << 30;
  int properties_error = 0;  // returned by cudaGetDeviceProperties
};
// For tests; sets it for the whole process. Returns the previous machine.
Machine set_machine(const Machine& machine);
Machine machine();

// A kernel launch: its shape, its body with all arguments bound, and its place in the source.
struct Launch {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes = 0;
  std::function<void()> thread;
  SourcePlace where;
};
// Runs the whole launch, now, on this thread.
void run(const Launch& launch);

// Returns the cudaError_t of a launch of this shape on a GPU. `shared_limit`: the limit set with
// cudaFuncSetAttribute.
int check_shape(const Launch& launch, std::size_t shared_limit);

// When work on streams is done (streams.h), from FETTLE_EMULATOR_STREAMS (empty, `late` or
// `others-first`) unless a test sets it: at once; when the host waits for it; or in an order in
// which streams that the host does not wait for go first.
enum class Streams : std::uint8_t { kAtOnce, kLate, kOthersFirst };
void set_streams(Streams streams);
Streams streams_in_use();

// Selects the only GPU that this thread sees; initially the first in CUDA_VISIBLE_DEVICES. So each
// of several threads, or processes, can have its own GPU.
void use_device(int number);
int device_in_use();

// The order of threads and blocks, from FETTLE_EMULATOR_ORDER unless a test sets it.
enum class Order : std::uint8_t { kRising, kFalling, kShuffled, kInterleaved };
// A shuffled order restarts with the seed.
void set_order(Order order, std::uint64_t seed = 0);

// Bytes moved by the packs of kernels (kernels/cuda/device_code/packs.h), in blocks that this
// thread ran.
struct Traffic {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};
extern constinit thread_local Traffic traffic;

// ---- Primitives of device code (device_functions.h) --------------------------------------------

// Waits for all threads of the block that have not ended. Returns the number of true predicates.
int barrier(bool predicate, SourcePlace where);
// Waits for the lanes in `mask`, which make the same call at the same place. Returns the value of
// lane `source`; for a missing lane all bits are set (NaN), because CUDA leaves it undefined.
std::uint64_t shuffle(unsigned mask, std::uint64_t value, unsigned source, SourcePlace where);
// With interleaved blocks, another block may run before this returns.
void let_blocks_run();
// Returns the lanes in `mask` whose predicate holds.
unsigned ballot(unsigned mask, bool predicate, SourcePlace where);
unsigned lane();
// This block's dynamic shared memory; 16-byte aligned, filled with NaN when a block begins.
std::byte* dynamic_shared();

}  // namespace fettle::kernels::emulator
