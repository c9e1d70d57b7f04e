// A plan as lines for people, as plan tables write it (tests/plan/README.md).
// For plan_table_test only.
#pragma once

#include <string>
#include <vector>

#include "core/plan.h"

namespace fettle::core {

std::vector<std::string> lines_of(const StudyPlan& plan);
std::vector<std::string> lines_of(const TrialPlan& plan);

}  // namespace fettle::core
