// Normal distributions. Pure functions; any thread.
#pragma once

#include <cmath>
#include <numbers>

namespace fettle::search {

// Of the standard normal distribution.
inline double normal_density(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
}

// Exact in the lower tail; for the upper one ask for normal_cdf(-z).
inline double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// The z below which a share of `probability` lies; 0 < probability < 1.
double normal_quantile(double probability);

// A normal's mass far out is this, so that its logarithm exists.
constexpr double kSmallestMass = 1e-300;

// Mass of any normal between low and high, without cancellation in either tail.
double normal_mass(double low, double high, double centre, double sigma);

// Logarithm of what exp(-z^2 / 2) is multiplied by, so that it integrates to one over [0, 1].
double unit_normal_log_scale(double centre, double sigma);

}  // namespace fettle::search
