#include "search/maths/normal.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>

#include "base/check.h"

namespace fettle::search {

double normal_quantile(double probability) {
  CHECK(probability > 0 && probability < 1, "a quantile is of a share between 0 and 1");
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * probability);
}

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
