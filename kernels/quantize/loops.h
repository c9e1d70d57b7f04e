// Numbers on the byte grid of a range (formulas.h), element by element. Inlined into functions that
// a backend compiles for its processors; all give the same bits. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "kernels/quantize/formulas.h"

namespace fettle::kernels {

[[gnu::always_inline]] inline void fake_quantize_all(std::int64_t count, const float* range,
                                                     const float* x, float* y) {
  const ByteGrid grid = byte_grid(range[0], range[1]);
  for (std::int64_t i = 0; i < count; ++i) y[i] = on_byte_grid(grid, x[i]);
}

}  // namespace fettle::kernels
