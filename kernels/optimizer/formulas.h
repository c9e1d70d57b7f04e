// The optimisers' formulas for one weight, as torch.optim has them (2.11; foreach and fused
// variants compute the same). g is the scaled gradient; t the step, from 1.
//
//   SGD      g += d w;  b = m b + g;  w -= lr (nesterov ? g + m b : b)       b starts at zero,
//   which
//            makes b = g at the first step as in PyTorch
//   Adam     g += d w;  m += (1 - beta1)(g - m);  v = beta2 v + (1 - beta2) g^2
//            w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)       Kingma, Ba
//            2015
//   AdamW    w -= lr d w, then Adam without d                            Loshchilov, Hutter 2019
//   RMSprop  g += d w;  s = a s + (1 - a) g^2;  u = g / (sqrt(s) + epsilon)
//            with momentum: b = m b + u, w -= lr b; otherwise w -= lr u        Tieleman, Hinton
//            2012
//
// Each is a struct: its constructor works out what is the same for all weights (in double), the
// call updates one weight. No branch depends on data, so the loops around them vectorise. Written
// once, used by the loops of every CPU backend; no operation here is reordered by vectorising, so
// all CPU backends give the same bits.
#pragma once

#include <cmath>

#include "kernels/backend.h"

namespace fettle::kernels {

struct SgdFormula {
  SgdFormula(const UpdateSettings& s, float weight_decay, const StepControl& step)
      : scale(step.gradient_scale),
        rate(step.input.learning_rate),
        momentum(s.momentum),
        decay(weight_decay),
        direct(s.nesterov ? 1.0F : 0.0F),
        buffered(s.nesterov ? s.momentum : 1.0F) {}

  // `state2` is not used.
  void operator()(float& weight, float gradient, float& buffer, float&) const {
    const float g = gradient * scale + decay * weight;
    buffer = momentum * buffer + g;
    weight -= rate * (direct * g + buffered * buffer);
  }

  float scale, rate, momentum, decay, direct, buffered;
};

struct AdamFormula {
  // `decoupled`: AdamW.
  AdamFormula(const UpdateSettings& s, float weight_decay, const StepControl& step, bool decoupled)
      : scale(step.gradient_scale),
        decay(decoupled ? 0 : weight_decay),
        keep(decoupled ? static_cast<float>(1 - double{step.input.learning_rate} * weight_decay)
                       : 1.0F),
        blend1(static_cast<float>(1 - double{s.beta1})),
        beta2(s.beta2),
        blend2(static_cast<float>(1 - double{s.beta2})),
        epsilon(s.epsilon) {
    const auto updates = static_cast<double>(step.updates);
    rate = static_cast<float>(step.input.learning_rate / (1 - std::pow(double{s.beta1}, updates)));
    root_correction = static_cast<float>(std::sqrt(1 - std::pow(double{s.beta2}, updates)));
  }

  void operator()(float& weight, float gradient, float& first, float& second) const {
    const float kept = weight * keep;
    const float g = gradient * scale + decay * kept;
    first += blend1 * (g - first);
    second = beta2 * second + blend2 * g * g;
    weight = kept - rate * first / (std::sqrt(second) / root_correction + epsilon);
  }

  float scale, decay, keep, blend1, beta2, blend2, epsilon, rate, root_correction;
};

struct RmspropFormula {
  RmspropFormula(const UpdateSettings& s, float weight_decay, const StepControl& step)
      : scale(step.gradient_scale),
        rate(step.input.learning_rate),
        momentum(s.momentum),
        decay(weight_decay),
        smoothing(s.smoothing),
        blend(static_cast<float>(1 - double{s.smoothing})),
        epsilon(s.epsilon) {}

  void operator()(float& weight, float gradient, float& mean_square, float& buffer) const {
    const float g = gradient * scale + decay * weight;
    mean_square = smoothing * mean_square + blend * g * g;
    buffer = momentum * buffer + g / (std::sqrt(mean_square) + epsilon);
    weight -= rate * buffer;
  }

  float scale, rate, momentum, decay, smoothing, blend, epsilon;
};

}  // namespace fettle::kernels
