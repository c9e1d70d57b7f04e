// Runs the plan tables of tests/plan/*.yaml: observed -> actions (format: tests/plan/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/test_paths.h"
#include "core/study/study_plan.h"
#include "core/testing/fake_sampler.h"
#include "core/testing/plan_case.h"
#include "core/testing/plan_text.h"
#include "core/trial/trial_plan.h"

namespace fettle::core {
namespace {

std::vector<PlanCase> all_cases() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/plan"))) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  std::vector<PlanCase> cases;
  for (const std::string& file : files) {
    for (PlanCase& plan_case : read_plan_cases(file)) cases.push_back(std::move(plan_case));
  }
  return cases;
}

std::vector<std::string> plan(const PlanCase& plan_case) {
  if (plan_case.is_study) {
    FakeSampler sampler(plan_case.space);
    const StudyView view{plan_case.study, plan_case.trials, plan_case.capacity};
    return lines_of(plan_study(view, sampler, plan_case.now_ms));
  }
  if (plan_case.orphan) {
    return lines_of(plan_orphan(*plan_case.trials.front(), plan_case.runs, plan_case.now_ms));
  }
  const TrialView view{plan_case.study, *plan_case.trials.front(), plan_case.runs};
  return lines_of(plan_trial(view, plan_case.now_ms));
}

// Both lists side by side: "  " in both, "- " expected only, "+ " planned only.
std::string difference(const std::vector<std::string>& expected,
                       const std::vector<std::string>& planned) {
  std::string text;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < expected.size() || j < planned.size()) {
    if (i < expected.size() && j < planned.size() && expected[i] == planned[j]) {
      text += "    " + expected[i++] + "\n";
      ++j;
      continue;
    }
    const auto from = planned.begin() + static_cast<std::ptrdiff_t>(j);
    const bool comes_later =
        i < expected.size() && std::find(from, planned.end(), expected[i]) != planned.end();
    if (i < expected.size() && !comes_later) {
      text += "  - " + expected[i++] + "\n";
    } else {
      text += "  + " + planned[j++] + "\n";
    }
  }
  return text;
}

class PlanTable : public testing::TestWithParam<PlanCase> {};

TEST_P(PlanTable, Holds) {
  const PlanCase& plan_case = GetParam();
  const std::vector<std::string> planned = plan(plan_case);
  if (planned != plan_case.expected) {
    FAIL() << plan_case.file << ": " << plan_case.name << "\n"
           << difference(plan_case.expected, planned) << "(- expected, + planned)";
  }
  EXPECT_EQ(plan(plan_case), planned) << "the same view gave two plans";
}

std::string test_name(const testing::TestParamInfo<PlanCase>& tested) {
  std::string name = tested.param.file.substr(0, tested.param.file.rfind('.')) + "_";
  bool upper = true;
  for (const char c : tested.param.name) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter) name += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = !letter;
  }
  return name + "_" + std::to_string(tested.index);
}

INSTANTIATE_TEST_SUITE_P(Tables, PlanTable, testing::ValuesIn(all_cases()), test_name);

}  // namespace
}  // namespace fettle::core
