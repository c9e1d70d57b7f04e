#include "search/maths/normal.h"

#include <boost/math/special_functions/erf.hpp>

#include "base/check.h"

namespace fettle::search {

double normal_quantile(double probability) {
  CHECK(probability > 0 && probability < 1, "a quantile is of a share between 0 and 1");
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * probability);
}

}  // namespace fettle::search
