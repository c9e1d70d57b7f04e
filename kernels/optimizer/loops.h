// The loops around formulas.h. Inlined into functions that a backend compiles for its processors;
// the arithmetic, and so the result, is the same for all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cast/loops.h"
#include "kernels/optimizer/formulas.h"

namespace fettle::kernels {

// Weights updated before they are rounded: few enough to stay in the first-level cache.
inline constexpr std::int64_t kUpdateBlock = 1024;

// Without a buffer, the formula reads zero and its new state is dropped.
template <bool has_state1, bool has_state2, class Formula>
[[gnu::always_inline]] inline void update_block(const Formula& formula, std::int64_t count,
                                                float* __restrict weights,
                                                const float* __restrict gradient,
                                                float* __restrict state1,
                                                float* __restrict state2) {
  const Formula local = formula;  // in registers: no store to an array can change it
  for (std::int64_t i = 0; i < count; ++i) {
    float weight = weights[i];
    float first = has_state1 ? state1[i] : 0;
    float second = has_state2 ? state2[i] : 0;
    local(weight, gradient[i], first, second);
    weights[i] = weight;
    if (has_state1) state1[i] = first;
    if (has_state2) state2[i] = second;
  }
}

// Masks weights `begin` to `begin` + count of a part.
[[gnu::always_inline]] inline void mask_block(const UpdateBuffers& b, std::int64_t begin,
                                              std::int64_t count) {
  for (std::int64_t i = begin; i < begin + count; ++i) {
    b.weights[i] = masked(b.weights[i], b.mask, i);
  }
}

template <class Formula>
[[gnu::always_inline]] inline void update_all(const UpdateBuffers& b, const Formula& formula) {
  for (std::int64_t i = 0; i < b.count; i += kUpdateBlock) {
    const std::int64_t count = std::min(kUpdateBlock, b.count - i);
    float* weights = b.weights + i;
    const float* gradient = b.gradient + i;
    if (b.state1 != nullptr && b.state2 != nullptr) {
      update_block<true, true>(formula, count, weights, gradient, b.state1 + i, b.state2 + i);
    } else if (b.state1 != nullptr) {  // no rule has a state2 alone
      update_block<true, false>(formula, count, weights, gradient, b.state1 + i, nullptr);
    } else {
      update_block<false, false>(formula, count, weights, gradient, nullptr, nullptr);
    }
    if (b.mask != nullptr) mask_block(b, i, count);
    if (b.rounded != nullptr) round_all(b.rounded_type, count, weights, b.rounded + i);
  }
}

// Sums in kLanes interleaved sums, merged at the end: a fixed order that vectorises.
[[gnu::always_inline]] inline double sum_squares(std::int64_t count, const float* values) {
  constexpr std::int64_t kLanes = 16;
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane) {
    const double value = values[i + lane];
    sums[lane] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace fettle::kernels
