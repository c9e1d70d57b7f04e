// The standard normal distribution. Pure functions; any thread.
#pragma once

#include <cmath>
#include <numbers>

namespace fettle::search {

inline double normal_density(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
}

// Exact in the lower tail; for the upper one ask for normal_cdf(-z).
inline double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// The z below which a share of `probability` lies; 0 < probability < 1.
double normal_quantile(double probability);

}  // namespace fettle::search
