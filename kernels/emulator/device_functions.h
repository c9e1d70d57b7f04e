// CUDA's device functions, for code that g++ compiles for the emulator: barriers, warp operations,
// atomics, intrinsics. Names and meanings follow the CUDA C++ Programming Guide. Included by
// cuda_runtime.h. Only code that runs in a kernel may call them.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "base/source_place.h"
#include "kernels/emulator/emulator.h"

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __constant__ static
// A thread of the operating system runs one block at a time (emulator.h).
#define __shared__ static thread_local

extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local uint3 blockDim;
extern constinit thread_local uint3 gridDim;
inline constexpr int warpSize = fettle::kernels::emulator::kWarpLanes;

// ---- Barriers ----------------------------------------------------------------------------------

inline void __syncthreads(fettle::SourcePlace where = fettle::SourcePlace::current()) {
  fettle::kernels::emulator::barrier(false, where);
}
inline int __syncthreads_count(int predicate,
                               fettle::SourcePlace where = fettle::SourcePlace::current()) {
  return fettle::kernels::emulator::barrier(predicate != 0, where);
}
inline int __syncthreads_or(int predicate,
                            fettle::SourcePlace where = fettle::SourcePlace::current()) {
  return fettle::kernels::emulator::barrier(predicate != 0, where) != 0 ? 1 : 0;
}
inline int __syncthreads_and(int predicate,
                             fettle::SourcePlace where = fettle::SourcePlace::current()) {
  return fettle::kernels::emulator::barrier(predicate == 0, where) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFF,
                       fettle::SourcePlace where = fettle::SourcePlace::current()) {
  fettle::kernels::emulator::ballot(mask, false, where);
}
inline void __threadfence() { fettle::kernels::emulator::let_blocks_run(); }
inline void __threadfence_block() {}

// ---- Warp operations ---------------------------------------------------------------------------

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              fettle::SourcePlace where = fettle::SourcePlace::current()) {
  return fettle::kernels::emulator::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate,
                      fettle::SourcePlace where = fettle::SourcePlace::current()) {
  return fettle::kernels::emulator::ballot(mask, predicate != 0, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      fettle::SourcePlace where = fettle::SourcePlace::current()) {
  return fettle::kernels::emulator::ballot(mask, predicate == 0, where) == 0 ? 1 : 0;
}

namespace fettle::kernels::emulator {

template <class T>
T shuffle_value(unsigned mask, T value, unsigned source, fettle::SourcePlace where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle(mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Stores `value` if better(value, current value).
template <class T, class Better>
T store_better(T* address, T value, Better better) {
  static_assert(std::is_integral_v<T>, "CUDA has atomicMax and atomicMin of integers only");
  std::atomic_ref<T> at(*address);
  T found = at.load(std::memory_order_relaxed);
  while (better(value, found) &&
         !at.compare_exchange_weak(found, value, std::memory_order_relaxed)) {
  }
  return found;
}

}  // namespace fettle::kernels::emulator

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              fettle::SourcePlace where = fettle::SourcePlace::current()) {
  const unsigned lane = fettle::kernels::emulator::lane();
  const unsigned segment = static_cast<unsigned>(width) - 1;
  return fettle::kernels::emulator::shuffle_value(
      mask, value, (lane & ~segment) + (static_cast<unsigned>(source) & segment), where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 fettle::SourcePlace where = fettle::SourcePlace::current()) {
  const unsigned lane = fettle::kernels::emulator::lane();
  const unsigned within = lane & (static_cast<unsigned>(width) - 1);
  return fettle::kernels::emulator::shuffle_value(mask, value, within < delta ? lane : lane - delta,
                                                  where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   fettle::SourcePlace where = fettle::SourcePlace::current()) {
  const unsigned lane = fettle::kernels::emulator::lane();
  const unsigned within = lane & (static_cast<unsigned>(width) - 1);
  const bool outside = within + delta >= static_cast<unsigned>(width);
  return fettle::kernels::emulator::shuffle_value(mask, value, outside ? lane : lane + delta,
                                                  where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  fettle::SourcePlace where = fettle::SourcePlace::current()) {
  const unsigned lane = fettle::kernels::emulator::lane();
  const unsigned segment_end = (lane | (static_cast<unsigned>(width) - 1)) + 1;
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  return fettle::kernels::emulator::shuffle_value(mask, value, source < segment_end ? source : lane,
                                                  where);
}

// ---- Atomics return the old value --------------------------------------------------------------

namespace fettle::kernels::emulator {

// Other blocks may run before and after an atomic, never within it.
class Atomic {
 public:
  Atomic() { let_blocks_run(); }
  ~Atomic() { let_blocks_run(); }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;
};

}  // namespace fettle::kernels::emulator

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  const fettle::kernels::emulator::Atomic atomic;
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
// Increments, and wraps to 0 behind `last`.
inline unsigned atomicInc(unsigned* address, unsigned last) {
  const fettle::kernels::emulator::Atomic atomic;
  std::atomic_ref<unsigned> at(*address);
  unsigned found = at.load(std::memory_order_relaxed);
  while (
      !at.compare_exchange_weak(found, found >= last ? 0 : found + 1, std::memory_order_relaxed)) {
  }
  return found;
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  const fettle::kernels::emulator::Atomic atomic;
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const fettle::kernels::emulator::Atomic atomic;
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  const fettle::kernels::emulator::Atomic atomic;
  return std::atomic_ref<T>(*address).fetch_or(value, std::memory_order_relaxed);
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  const fettle::kernels::emulator::Atomic atomic;
  return fettle::kernels::emulator::store_better(address, value, std::greater<T>());
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  const fettle::kernels::emulator::Atomic atomic;
  return fettle::kernels::emulator::store_better(address, value, std::less<T>());
}

// ---- Memory with hints -------------------------------------------------------------------------

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}
template <class T>
void __stcg(T* address, T value) {
  *address = value;
}

// ---- Numbers -----------------------------------------------------------------------------------

// Macros, because glibc's <math.h> declares functions with these names. A GPU's are less exact.
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)

inline float rsqrtf(float x) { return 1.0F / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.0F / sqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0F), 1.0F); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return sqrt(x); }

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((std::uint64_t{x} * y) >> 32);
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }

inline int min(int a, int b) { return b < a ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline long min(long a, long b) { return b < a ? b : a; }
inline unsigned long min(unsigned long a, unsigned long b) { return b < a ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long max(long a, long b) { return a < b ? b : a; }
inline unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// NOLINTEND(readability-identifier-naming)
