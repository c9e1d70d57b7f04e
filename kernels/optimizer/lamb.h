// LAMB (You et al. 2020, arXiv 1904.00962, algorithm 2): Adam's direction with decoupled weight
// decay, scaled to the norm of its tensor's weights.
//
//   m += (1 - beta1)(g - m);  v = beta2 v + (1 - beta2) g^2
//   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + d w
//   w -= lr |w| / |u| u             |.| over the tensor; the ratio is 1 where either norm is zero
//
// The function phi of the paper is the identity. Norms are sums of squares in double, in a fixed
// order of lanes, so that every CPU backend gives the same bits. (A GPU sums in another order, so
// the ratio may differ by the last bit of a double.) Two passes over the tensor: moments and norms,
// then the weights; u is cheaper to compute twice than to store. Inlined into functions that a
// backend compiles for its processors.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cast/loops.h"
#include "kernels/optimizer/formulas.h"

namespace fettle::kernels {

struct LambFormula {
  LambFormula() = default;
  FETTLE_HOST_DEVICE LambFormula(const UpdateSettings& s, const UpdateBuffers& part,
                                 const StepControl& step)
      : scale(step.gradient_scale),
        rate(rate_of(part, step)),
        decay(part.weight_decay),
        blend1(static_cast<float>(1 - s.beta1)),
        beta2(static_cast<float>(s.beta2)),
        blend2(static_cast<float>(1 - s.beta2)),
        epsilon(static_cast<float>(s.epsilon)) {
    // step.updates is t: this update included, so at least 1.
    correction1 = static_cast<float>(1 - power(s.beta1, step.updates));
    root_correction = static_cast<float>(std::sqrt(1 - power(s.beta2, step.updates)));
  }

  FETTLE_HOST_DEVICE void update_moments(float gradient, float& first, float& second) const {
    const float g = gradient * scale;
    first += blend1 * (g - first);
    second = beta2 * second + blend2 * g * g;
  }
  FETTLE_HOST_DEVICE float direction(float weight, float first, float second) const {
    return first / correction1 / (std::sqrt(second) / root_correction + epsilon) + decay * weight;
  }

  float scale, rate, decay, blend1, beta2, blend2, epsilon, correction1, root_correction;
};

// Returns |w| / |u| from their squares.
FETTLE_HOST_DEVICE inline double lamb_ratio(double weights, double directions) {
  return weights > 0 && directions > 0 ? std::sqrt(weights / directions) : 1;
}

// Updates the moments; returns |w| / |u|.
[[gnu::always_inline]] inline double begin_lamb(const UpdateBuffers& b, const LambFormula& f) {
  constexpr std::int64_t kLanes = 16;
  double weight_squares[kLanes] = {};
  double direction_squares[kLanes] = {};
  for (std::int64_t i = 0; i < b.count; ++i) {
    f.update_moments(b.gradient[i], b.state1[i], b.state2[i]);
    const double weight = b.weights[i];
    const double direction = f.direction(b.weights[i], b.state1[i], b.state2[i]);
    weight_squares[i % kLanes] += weight * weight;
    direction_squares[i % kLanes] += direction * direction;
  }
  double weights = 0;
  double directions = 0;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    weights += weight_squares[lane];
    directions += direction_squares[lane];
  }
  return lamb_ratio(weights, directions);
}

// Updates one tensor. loops.h has the other formulas.
[[gnu::always_inline]] inline void update_all(const UpdateBuffers& b, const LambFormula& f) {
  const auto rate = static_cast<float>(f.rate * begin_lamb(b, f));
  for (std::int64_t i = 0; i < b.count; ++i) {
    b.weights[i] -= rate * f.direction(b.weights[i], b.state1[i], b.state2[i]);
    if (b.mask != nullptr) b.weights[i] = masked(b.weights[i], b.mask, i);
  }
  if (b.rounded != nullptr) round_all(b.rounded_type, b.count, b.weights, b.rounded);
}

}  // namespace fettle::kernels
