#include "search/maths/unit_normal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fettle::search {

double normal_mass(double low, double high, double centre, double sigma) {
  const double a = (low - centre) / (sigma * std::numbers::sqrt2);
  const double b = (high - centre) / (sigma * std::numbers::sqrt2);
  const double mass = a > 0 ? std::erfc(a) - std::erfc(b) : std::erfc(-b) - std::erfc(-a);
  return std::max(0.5 * mass, kSmallestMass);
}

double unit_normal_log_scale(double centre, double sigma) {
  return -std::log(sigma) - 0.5 * std::log(2 * std::numbers::pi) -
         std::log(normal_mass(0, 1, centre, sigma));
}

}  // namespace fettle::search
