#include "search/gp/acquisition.h"

#include <cmath>
#include <numbers>

namespace fettle::search::gp {
namespace {

// Below -kFar the two terms of h cancel, and the continued fraction needs few terms.
constexpr double kFar = 6;
constexpr int kTerms = 40;

const double kLogSqrtTwoPi = 0.5 * std::log(2 * std::numbers::pi);

// Mills' ratio is R(x) = 1 / (x + c), c = 1 / (x + 2 / (x + 3 / (x + ...))) (Laplace). Then 1 - x
// R(x) = c / (x + c), which is free of cancellation.
double laplace(double x) {
  double tail = 0;
  for (int k = kTerms; k >= 1; --k) tail = k / (x + tail);
  return tail;
}

}  // namespace

LogImprovement log_improvement(double u) {
  if (u > -kFar) {
    const double density = std::exp(-0.5 * u * u - kLogSqrtTwoPi);
    const double below = 0.5 * std::erfc(-u / std::numbers::sqrt2);
    const double h = density + u * below;
    return {std::log(h), below / h};
  }
  const double x = -u;
  const double c = laplace(x);
  // h = phi (1 - x R) = phi c / (x + c), and Phi = phi R, so Phi / h = 1 / c.
  return {-0.5 * x * x - kLogSqrtTwoPi + std::log(c) - std::log(x + c), 1 / c};
}

LogProbability log_probability(double u) {
  const double log_density = -0.5 * u * u - kLogSqrtTwoPi;
  if (u > -kFar) {
    const double below = 0.5 * std::erfc(-u / std::numbers::sqrt2);
    return {std::log(below), std::exp(log_density) / below};
  }
  const double slope = -u + laplace(-u);  // phi / Phi = 1 / R
  return {log_density - std::log(slope), slope};
}

LogExpectedImprovement log_expected_improvement(double best, double mean, double sd) {
  const double u = (best - mean) / sd;
  const LogImprovement h = log_improvement(u);
  return {std::log(sd) + h.value, -h.slope / sd, (1 - u * h.slope) / sd};
}

// 1 - t / r = sd^2 / (r (r + t)), r^2 = sd^2 + t^2: free of cancellation; 1 without noise.
LogExpectedImprovement log_augmented_improvement(double best, double mean, double sd,
                                                 double noise) {
  LogExpectedImprovement out = log_expected_improvement(best, mean, sd);
  const double t = std::sqrt(noise);
  const double r = std::hypot(sd, t);
  out.value += std::log(sd * sd / (r * (r + t)));
  out.by_sd += t * (r + t) / (sd * r * r);
  return out;
}

}  // namespace fettle::search::gp
