// Numbers on 8-bit grids (formulas.h), the gradients that pass them, and the ranges of grids.
// 16-bit types are widened, computed with in fp32 and rounded. Inlined into functions that a
// backend compiles for its processors; all give the same bits. Pure; usable from any thread.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/bfloat16.h"
#include "kernels/float16.h"
#include "kernels/quantize/formulas.h"

namespace fettle::kernels {

// Elements of buffers by type; numbers are fp32 between reading and writing.
struct Float32Buffers {
  using Stored = float;
  static float widen(float x) { return x; }
  static float round(float x) { return x; }
};
struct BFloat16Buffers {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t x) { return from_bfloat16(x); }
  static std::uint16_t round(float x) { return to_bfloat16(x); }
};
struct Float16Buffers {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t x) { return from_float16(x); }
  static std::uint16_t round(float x) { return to_float16(x); }
};

template <class Type>
[[gnu::always_inline]] inline const typename Type::Stored* read(ConstBuffer x) {
  return static_cast<const typename Type::Stored*>(x);
}
template <class Type>
[[gnu::always_inline]] inline typename Type::Stored* write(Buffer y) {
  return static_cast<typename Type::Stored*>(y);
}

struct FakeQuantize {
  template <class Type>
  [[gnu::always_inline]] static void run(std::int64_t count, const float* range, ConstBuffer x,
                                         Buffer y) {
    const ByteGrid grid = byte_grid(range[0], range[1]);
    const auto* from = read<Type>(x);
    auto* to = write<Type>(y);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = Type::round(on_byte_grid(grid, Type::widen(from[i])));
    }
  }
};

struct FakeQuantizeGradient {
  template <class Type>
  [[gnu::always_inline]] static void run(std::int64_t count, const float* range, ConstBuffer x,
                                         ConstBuffer dy, Buffer dx) {
    const ByteGrid grid = byte_grid(range[0], range[1]);
    const auto* at = read<Type>(x);
    const auto* from = read<Type>(dy);
    auto* to = write<Type>(dx);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = Type::round(byte_grid_gradient(grid, Type::widen(at[i]), Type::widen(from[i])));
    }
  }
};

struct TrackRange {
  template <class Type>
  [[gnu::always_inline]] static void run(std::int64_t count, ConstBuffer x, float share,
                                         float* range) {
    const auto* from = read<Type>(x);
    float least = 0;
    float most = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = Type::widen(from[i]);
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
    range[0] = tracked(range[0], least, share);
    range[1] = tracked(range[1], most, share);
  }
};

struct FakeQuantizeWeights {
  template <class Type>
  [[gnu::always_inline]] static void run(const WeightRows& rows, ConstBuffer x, Buffer y) {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const auto* from = read<Type>(x) + row * rows.width;
      auto* to = write<Type>(y) + row * rows.width;
      float most = 0;
      for (std::int64_t i = 0; i < rows.width; ++i) {
        const float size = std::abs(Type::widen(from[i]));
        most = size > most ? size : most;
      }
      const float scale = weight_scale(most, rows.limit);
      for (std::int64_t i = 0; i < rows.width; ++i) {
        to[i] = Type::round(on_weight_grid(scale, rows.limit, Type::widen(from[i])));
      }
    }
  }
};

// Runs the function on elements of `type`.
template <class Function, class... Arguments>
[[gnu::always_inline]] inline void run_typed(DataType type, const Arguments&... arguments) {
  if (type == DataType::kFloat32) {
    Function::template run<Float32Buffers>(arguments...);
  } else if (type == DataType::kBFloat16) {
    Function::template run<BFloat16Buffers>(arguments...);
  } else {
    Function::template run<Float16Buffers>(arguments...);
  }
}

}  // namespace fettle::kernels
