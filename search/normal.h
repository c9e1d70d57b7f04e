// The standard normal distribution. Pure functions.
#pragma once

namespace fettle::search {

// P(X <= x).
double normal_cdf(double x);

// The x with P(X <= x) = p, for p in (0, 1): relative error below 1e-14 (Acklam's rational
// approximation and one step of Halley's method).
double normal_quantile(double p);

}  // namespace fettle::search
