// Packs of neighbouring numbers, read and written with instructions of 16 bytes, and the grid of
// kernels that go over the packs of many rows. Included by .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/numbers.h"

namespace fettle::kernels::cuda {

// Numbers in 16 bytes.
template <class T>
inline constexpr int kPackWidth = Pack<T>::kCount;

template <int width, class T>
__device__ __forceinline__ Pack<T, width> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, width>*>(from);
}

template <class T, int width>
__device__ __forceinline__ void store_pack(const Pack<T, width>& pack, T* to) {
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

// ---- On the host -------------------------------------------------------------------------------

// Whether packs may begin at this address. nullptr: no packs will.
template <int width, class T>
bool is_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Pack<T, width>) == 0;
}

// Calls use(width) with a constant that the compiler knows: `width`, or 1 without `packs`.
template <int width, class Use>
decltype(auto) with_width(bool packs, Use&& use) {
  if (packs) return use(std::integral_constant<int, width>());
  return use(std::integral_constant<int, 1>());
}

// ---- Rows x columns ----------------------------------------------------------------------------

// A grid whose x walks the columns and whose y walks the rows.
inline LaunchShape grid_over(std::int64_t rows, std::int64_t columns, unsigned threads_at_most) {
  constexpr std::int64_t kMaxBlocksY = 65535;
  const auto threads = static_cast<unsigned>(
      std::clamp<std::int64_t>((columns + 31) / 32 * 32, 32, threads_at_most));
  return {.blocks = blocks_for(columns, threads),
          .blocks_y = static_cast<unsigned>(std::clamp<std::int64_t>(rows, 1, kMaxBlocksY)),
          .threads = threads};
}

// visit(row, column) for the cells of one thread.
template <class Visit>
__device__ __forceinline__ void for_each_cell(std::int64_t rows, std::int64_t columns,
                                              Visit visit) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) visit(row, column);
}

}  // namespace fettle::kernels::cuda
