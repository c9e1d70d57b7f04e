// Normal distributions. Pure functions; any thread.
#pragma once

#include <cmath>
#include <numbers>

namespace fettle::search {

// Density of the standard normal distribution.
inline double normal_density(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
}

// Standard normal distribution function. Exact in the lower tail; for the upper tail use
// normal_cdf(-z).
inline double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// The z that a standard normal is below with this probability; 0 < probability < 1.
double normal_quantile(double probability);

// The least mass that normal_mass() returns, so that its logarithm exists.
constexpr double kSmallestMass = 1e-300;

// Mass of a normal between low and high, without cancellation in either tail.
double normal_mass(double low, double high, double centre, double sigma);

// Logarithm of the factor that makes a normal density over [0, 1] integrate to one: the density
// there is exp(-z^2 / 2) times this factor.
double unit_normal_log_scale(double centre, double sigma);

}  // namespace fettle::search
