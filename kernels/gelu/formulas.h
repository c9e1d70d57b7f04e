// GELU at one point, for the CPU reference in double and a GPU in fp32 (reference.cpp has the
// source of the formulas). Pure; usable from any thread and from device code.
#pragma once

#include <cmath>
#include <numbers>
#include <type_traits>

#include "kernels/backend.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

// y = x share, and the slope of y.
template <class Real>
struct GeluPoint {
  Real share = 0;
  Real slope = 0;
};

template <class Real>
FETTLE_HOST_DEVICE inline GeluPoint<Real> exact_gelu_at(Real x) {
  constexpr Real kInverseRoot2 = 1 / std::numbers::sqrt2_v<Real>;
  constexpr Real kDensityAtZero = std::numbers::inv_sqrtpi_v<Real> * kInverseRoot2;
  const Real share = std::erfc(-x * kInverseRoot2) / 2;
  const Real density = std::exp(-x * x / 2) * kDensityAtZero;
  return {share, share + x * density};
}

// Uses (1 + tanh u) / 2 = 1 / (1 + exp(-2u)): an exponential is cheaper than tanh.
template <class Real>
FETTLE_HOST_DEVICE inline GeluPoint<Real> tanh_gelu_at(Real x) {
  constexpr Real kCubic = static_cast<Real>(0.044715);
  constexpr Real kFactor = std::numbers::sqrt2_v<Real> * std::numbers::inv_sqrtpi_v<Real>;
  // From here on the share is 0 or 1 to the last bit; the cube of a larger number might overflow.
  constexpr Real kFlatFrom = 16;
  x = x < -kFlatFrom ? -kFlatFrom : x;
  x = x > kFlatFrom ? kFlatFrom : x;
  const Real inner = kFactor * (x + kCubic * x * x * x);
  const Real inner_slope = kFactor * (1 + 3 * kCubic * x * x);
  const Real share = 1 / (1 + std::exp(-2 * inner));
  return {share, share + 2 * x * share * (1 - share) * inner_slope};
}

template <GeluForm form, class Real>
FETTLE_HOST_DEVICE inline GeluPoint<Real> gelu_at(Real x) {
  if constexpr (form == GeluForm::kExact) return exact_gelu_at(x);
  return tanh_gelu_at(x);
}

// Calls use(form) with the form as a compile-time constant.
template <class Use>
decltype(auto) with_gelu_form(GeluForm form, Use&& use) {
  if (form == GeluForm::kExact) {
    return use(std::integral_constant<GeluForm, GeluForm::kExact>());
  }
  return use(std::integral_constant<GeluForm, GeluForm::kTanh>());
}

}  // namespace fettle::kernels
