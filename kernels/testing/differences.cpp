#include "kernels/testing/differences.h"

#include <numeric>

namespace fettle::kernels::testing {

void expect_gradient(const std::function<double()>& f, float* values, const Floats& gradient,
                     float step, double tolerance, const std::string& what) {
  Floats measured(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float before = values[i];
    values[i] = before + step;
    const double above = f();
    values[i] = before - step;
    const double below = f();
    values[i] = before;
    measured[i] = static_cast<float>((above - below) / (2 * double{step}));
  }
  expect_close(gradient, measured, tolerance, what);
}

double dot(const Floats& a, const Floats& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace fettle::kernels::testing
