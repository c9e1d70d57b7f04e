// The optimisers' formulas for one weight, as in torch.optim (2.11; foreach and fused variants
// compute the same). g is the scaled gradient; t the step, from 1.
//
//   SGD      g += d w;  b = m b + g;  w -= lr (nesterov ? g + m b : b)
//            b starts at zero, which makes b = g at the first step, as in PyTorch
//   Adam     g += d w;  m += (1 - beta1)(g - m);  v = beta2 v + (1 - beta2) g^2
//            w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//            Kingma, Ba 2015
//   AdamW    w -= lr d w, then Adam without d
//            Loshchilov, Hutter 2019
//   RMSprop  g += d w;  s = a s + (1 - a) g^2;  u = g / (sqrt(s) + epsilon)
//            with momentum: b = m b + u, w -= lr b; otherwise w -= lr u
//            Tieleman, Hinton 2012
//
// Each is a struct: its constructor computes the values that all weights share (in double), and a
// call updates one weight. No branch depends on data, so the loops around them vectorise. The loops
// of every CPU backend and the GPU's kernels (optimizer.cu) share this code. Vectorisation reorders
// nothing here, products and sums are rounded one by one (-ffp-contract=off, under nvcc
// -fmad=false), and +, -, *, /, sqrt follow IEEE 754, so all backends give the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

// Computes base^exponent by repeated squaring: the same bits everywhere, which no library's pow
// promises. For a base below 1, its error against pow is far less than that of rounding to float.
FETTLE_HOST_DEVICE inline double power(double base, std::int64_t exponent) {
  double result = 1;
  for (double square = base; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= square;
    square *= square;
  }
  return result;
}

// The learning rate of a part, before and after it is rounded.
FETTLE_HOST_DEVICE inline double learning_rate(const UpdateBuffers& part, const StepControl& step) {
  return part.rate_scale * step.learning_rate;
}
FETTLE_HOST_DEVICE inline float rate_of(const UpdateBuffers& part, const StepControl& step) {
  return static_cast<float>(learning_rate(part, step));
}

// The new weight of index i under UpdateBuffers::mask.
FETTLE_HOST_DEVICE inline float masked(float weight, const std::uint16_t* mask, std::int64_t i) {
  const bool kept = (mask[i / kMaskBits] >> (i % kMaskBits) & 1) != 0;
  const float never_zero = weight == 0 ? kSmallestKept : weight;
  return kept ? never_zero : 0;
}

struct SgdFormula {
  SgdFormula() = default;
  FETTLE_HOST_DEVICE SgdFormula(const UpdateSettings& s, const UpdateBuffers& part,
                                const StepControl& step)
      : scale(step.gradient_scale),
        rate(rate_of(part, step)),
        momentum(static_cast<float>(s.momentum)),
        decay(part.weight_decay),
        direct(s.nesterov ? 1.0F : 0.0F),
        buffered(s.nesterov ? static_cast<float>(s.momentum) : 1.0F) {}

  // `state2` is not used.
  FETTLE_HOST_DEVICE void operator()(float& weight, float gradient, float& buffer, float&) const {
    const float g = gradient * scale + decay * weight;
    buffer = momentum * buffer + g;
    weight -= rate * (direct * g + buffered * buffer);
  }

  float scale, rate, momentum, decay, direct, buffered;
};

struct AdamFormula {
  AdamFormula() = default;
  // `decoupled`: AdamW's weight decay.
  FETTLE_HOST_DEVICE AdamFormula(const UpdateSettings& s, const UpdateBuffers& part,
                                 const StepControl& step, bool decoupled)
      : scale(step.gradient_scale),
        decay(decoupled ? 0 : part.weight_decay),
        keep(decoupled ? static_cast<float>(1 - learning_rate(part, step) * part.weight_decay)
                       : 1.0F),
        blend1(static_cast<float>(1 - s.beta1)),
        beta2(static_cast<float>(s.beta2)),
        blend2(static_cast<float>(1 - s.beta2)),
        epsilon(static_cast<float>(s.epsilon)) {
    rate = static_cast<float>(learning_rate(part, step) / (1 - power(s.beta1, step.updates)));
    root_correction = static_cast<float>(std::sqrt(1 - power(s.beta2, step.updates)));
  }

  FETTLE_HOST_DEVICE void operator()(float& weight, float gradient, float& first,
                                     float& second) const {
    const float kept = weight * keep;
    const float g = gradient * scale + decay * kept;
    first += blend1 * (g - first);
    second = beta2 * second + blend2 * g * g;
    weight = kept - rate * first / (std::sqrt(second) / root_correction + epsilon);
  }

  float scale, decay, keep, blend1, beta2, blend2, epsilon, rate, root_correction;
};

struct RmspropFormula {
  RmspropFormula() = default;
  FETTLE_HOST_DEVICE RmspropFormula(const UpdateSettings& s, const UpdateBuffers& part,
                                    const StepControl& step)
      : scale(step.gradient_scale),
        rate(rate_of(part, step)),
        momentum(static_cast<float>(s.momentum)),
        decay(part.weight_decay),
        smoothing(static_cast<float>(s.smoothing)),
        blend(static_cast<float>(1 - s.smoothing)),
        epsilon(static_cast<float>(s.epsilon)) {}

  FETTLE_HOST_DEVICE void operator()(float& weight, float gradient, float& mean_square,
                                     float& buffer) const {
    const float g = gradient * scale + decay * weight;
    mean_square = smoothing * mean_square + blend * g * g;
    buffer = momentum * buffer + g / (std::sqrt(mean_square) + epsilon);
    weight -= rate * buffer;
  }

  float scale, rate, momentum, decay, smoothing, blend, epsilon;
};

}  // namespace fettle::kernels
