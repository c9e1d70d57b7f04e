// Reasons that the elastic policy gives; its decisions are in tests/plan/study_elastic.yaml.
#include "core/study/elastic.h"

#include <gtest/gtest.h>

#include <memory>

namespace fettle::core {
namespace {

TEST(Elastic, TheStudyForWhichATrialShrinksIsNamed) {
  auto large = std::make_shared<api::Trial>();
  large->metadata.name = "digits-0";
  large->spec.workers = 8;
  large->spec.sizing = api::Sizing{120'000, 8, {}};
  api::RunRecord& run = large->status.runs.emplace_back();
  run.running_ms = 90'000;
  run.workers = 8;
  SizingView view{.min = 1, .max = 8, .ended = 0, .waiting_elsewhere_ms = 160'000};
  EXPECT_EQ(plan_sizes(view, {large}, 200'000).change->reason,
            "continues with 4 workers: a trial of another Study waits");
  view.who_waits = "team-b/mnist";
  EXPECT_EQ(plan_sizes(view, {large}, 200'000).change->reason,
            "continues with 4 workers: a trial of Study team-b/mnist waits");
}

}  // namespace
}  // namespace fettle::core
