#include "search/normal.h"

#include <cmath>
#include <numbers>

namespace fettle::search {
namespace {

// Acklam 2003: relative error below 1.2e-9 in the central region and the lower tail.
double central(double p) {
  const double q = p - 0.5;
  const double r = q * q;
  return q *
         (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
            1.383577518672690e+02) *
               r -
           3.066479806614716e+01) *
              r +
          2.506628277459239e+00) /
         (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
            6.680131188771972e+01) *
               r -
           1.328068155288572e+01) *
              r +
          1.0);
}

double lower_tail(double p) {
  const double q = std::sqrt(-2 * std::log(p));
  return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
            2.549732539343734e+00) *
               q +
           4.374664141464968e+00) *
              q +
          2.938163982698783e+00) /
         ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
           3.754408661907416e+00) *
              q +
          1.0);
}

}  // namespace

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_quantile(double p) {
  constexpr double kTail = 0.02425;
  if (p > 0.5) return -normal_quantile(1 - p);
  const double x = p < kTail ? lower_tail(p) : central(p);
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  const double step = (normal_cdf(x) - p) / density;
  return x - step / (1 + 0.5 * x * step);
}

}  // namespace fettle::search
