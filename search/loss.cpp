#include "search/loss.h"

#include <cmath>

#include "base/check.h"

namespace fettle::search {

double loss_sign(const std::vector<api::Objective>& objectives) {
  CHECK(!objectives.empty(), "a Study has an objective");
  return objectives[0].direction == api::Direction::kMaximize ? -1.0 : 1.0;
}

double loss_of(const api::Fact& fact, double sign) {
  const bool usable =
      !fact.infeasible && !fact.values.empty() && fact.values[0] && std::isfinite(*fact.values[0]);
  return usable ? sign * *fact.values[0] : kWorstLoss;
}

}  // namespace fettle::search
