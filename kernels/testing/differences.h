// Finite differences: an oracle that needs no derivatives.
#pragma once

#include <functional>

#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {

// Checks `gradient` = d f / d values by central differences (f(v + h) - f(v - h)) / 2h, element by
// element. `f` must be smooth within `step`; it reads `values`, which are changed and restored. The
// tolerance is relative to the largest element and covers the error of fp32 sums divided by h.
void expect_gradient(const std::function<double()>& f, float* values, const Floats& gradient,
                     float step, double tolerance, const std::string& what);

// sum of a[i] * b[i], in double: turns an output into the scalar whose gradient is taken.
double dot(const Floats& a, const Floats& b);

}  // namespace fettle::kernels::testing
