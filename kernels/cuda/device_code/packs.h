// Packs of neighbouring numbers, read and written with instructions of 16 bytes, and the grid of
// kernels that process the packs of many rows. Included by .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/numbers.h"

namespace fettle::kernels::cuda {

// Numbers in 16 bytes.
template <class T>
inline constexpr int kPackWidth = Pack<T>::kCount;

// Ends the process, with the address, if a pack's address is no multiple of its size, as a GPU
// would. Checks on the emulator only.
template <class Whole>
__device__ __forceinline__ void check_aligned([[maybe_unused]] const void* address) {
#ifndef __CUDACC__
  CHECK(reinterpret_cast<std::uintptr_t>(address) % alignof(Whole) == 0,
        "a pack at an address that is not aligned to it");
#endif
}

template <int width, class T>
__device__ __forceinline__ Pack<T, width> load_pack(const T* from) {
  check_aligned<Pack<T, width>>(from);
#ifndef __CUDACC__
  emulator::traffic.read += sizeof(Pack<T, width>);
#endif
  return *reinterpret_cast<const Pack<T, width>*>(from);
}

template <class T, int width>
__device__ __forceinline__ void store_pack(const Pack<T, width>& pack, T* to) {
  check_aligned<Pack<T, width>>(to);
#ifndef __CUDACC__
  emulator::traffic.written += sizeof(Pack<T, width>);
#endif
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

// ---- On the host -------------------------------------------------------------------------------

// Whether packs may begin at this address. True for nullptr, where no pack begins.
template <int width, class T>
bool is_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Pack<T, width>) == 0;
}

// Calls use(width) with a compile-time constant: `width`, or 1 without `packs`.
template <int width, class Use>
decltype(auto) with_width(bool packs, Use&& use) {
  if (packs) return use(std::integral_constant<int, width>());
  return use(std::integral_constant<int, 1>());
}

// Returns the elements of a pack if all rows of this many columns begin at a multiple of it; else
// 1.
template <class T>
int pack_width_for(std::int64_t columns) {
  return columns % kPackWidth<T> == 0 ? kPackWidth<T> : 1;
}

// Calls use(zero, width) with a value of the C++ type for `type`, and pack_width_for its rows as a
// compile-time constant:
//   with_packs(type, columns, [&](auto zero, auto width) { kernel<decltype(zero), width()> ... });
template <class Use>
decltype(auto) with_packs(DataType type, std::int64_t columns, Use&& use) {
  return with_type(type, [&](auto zero) {
    constexpr int kWidth = kPackWidth<decltype(zero)>;
    return with_width<kWidth>(columns % kWidth == 0, [&](auto width) { return use(zero, width); });
  });
}

// ---- Rows x columns ----------------------------------------------------------------------------

// Returns a grid whose x walks the columns and whose y walks the rows.
inline LaunchShape grid_over(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMaxBlocksY = 65535;  // CUDA's limit: for_each_cell strides over the rest
  const auto threads =
      static_cast<unsigned>(std::clamp<std::int64_t>((columns + 31) / 32 * 32, 32, kBlockThreads));
  return {.blocks = blocks_for(columns, threads),
          .blocks_y = static_cast<unsigned>(std::clamp<std::int64_t>(rows, 1, kMaxBlocksY)),
          .threads = threads};
}

// Calls visit(row, column) for the cells of one thread.
template <class Visit>
__device__ __forceinline__ void for_each_cell(std::int64_t rows, std::int64_t columns,
                                              Visit visit) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) visit(row, column);
}

}  // namespace fettle::kernels::cuda
