#include "search/maths/loss.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"

namespace fettle::search {

namespace {

bool is_known(const std::optional<double>& value) { return value && std::isfinite(*value); }

bool has_all_values(const api::Fact& fact) {
  return !fact.values.empty() && std::all_of(fact.values.begin(), fact.values.end(), is_known);
}

}  // namespace

double loss_sign(const std::vector<api::Objective>& objectives) {
  CHECK(!objectives.empty(), "a Study has an objective");
  return objectives[0].direction == api::Direction::kMaximize ? -1.0 : 1.0;
}

double loss_of(const api::Fact& fact, double sign) {
  const bool at_rung = fact.kind == api::FactKind::kRung;
  const bool usable = at_rung
                          ? has_all_values(fact)
                          : !fact.infeasible && !fact.values.empty() && is_known(fact.values[0]);
  return usable ? sign * *fact.values[0] : kWorstLoss;
}

bool is_outside(const api::Fact& fact) {
  return fact.kind == api::FactKind::kRung && fact.infeasible && has_all_values(fact);
}

}  // namespace fettle::search
