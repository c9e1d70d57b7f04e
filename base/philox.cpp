#include "base/philox.h"

#include <cmath>
#include <numbers>

namespace fettle {

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace fettle
