// One case of a plan table (tests/plan/README.md): the observations, and the expected plan. For
// plan_table_test only.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

struct PlanCase {
  std::string file;
  std::string name;
  std::int64_t now_ms = 0;
  api::Study study;
  // A table of trials asks plan_study, a single trial with its runs asks plan_trial.
  bool is_study = false;
  std::vector<api::TrialPtr> trials;
  std::vector<Run> runs;
  bool orphan = false;  // its Study is gone: asks plan_orphan
  Capacity capacity;
  std::int64_t space = 0;  // number of points in the space
  std::vector<std::string> expected;
};

// Tells GoogleTest how to print a case.
inline void PrintTo(const PlanCase& plan_case, std::ostream* out) { *out << plan_case.name; }

// Reads all cases of a file, in order. Aborts on a file that is wrong, saying where.
std::vector<PlanCase> read_plan_cases(const std::string& path);

}  // namespace fettle::core
