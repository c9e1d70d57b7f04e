#include "cli/views/expected_best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/philox.h"
#include "cli/testing/test_studies.h"
#include "cli/views/summary.h"

namespace fettle::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Sixty completed trials whose accuracy depends on the learning rate, and on luck.
RunView noisy_view(double noise) {
  RunView view = view_at_the_end();
  api::Study& study = view.study;
  study.spec.parameters = {api::Parameter{}};
  study.spec.parameters[0].name = "x";
  study.spec.parameters[0].type = api::ParameterType::kDouble;
  study.spec.parameters[0].min = 0;
  study.spec.parameters[0].max = 1;
  const api::Trial like = *view.trials.front();
  view.trials.clear();
  Random random(7);
  for (std::int64_t index = 0; index < 60; ++index) {
    auto trial = std::make_shared<api::Trial>(like);
    const double x = random.uniform();
    trial->spec.index = index;
    trial->metadata.name = study.metadata.name + "-" + std::to_string(index);
    trial->spec.parameters = Json::object({{"x", x}});
    trial->status.phase = api::TrialPhase::kCompleted;
    trial->status.report.reset();
    api::Fact fact;
    fact.kind = api::FactKind::kResult;
    fact.seq = index + 1;
    fact.values = {0.9 - (x - 0.4) * (x - 0.4) + noise * random.normal()};
    trial->status.facts = {fact};
    view.trials.push_back(std::move(trial));
  }
  bring_up_to_date(view);
  return view;
}

TEST(ExpectedBest, TheLuckierTrialIsNamed) {
  RunView view = noisy_view(0.1);
  const api::BestTrial measured = view.study.status.best.front();
  expect_best(view);
  ASSERT_TRUE(view.expected_best);
  ASSERT_TRUE(view.expected_best->luckier);
  EXPECT_EQ(view.expected_best->luckier->trial, measured.trial);
  EXPECT_NE(view.study.status.best.front().trial, measured.trial);
  EXPECT_LT(view.study.status.best.front().objectives[0], measured.objectives[0]);
  EXPECT_LT(view.expected_best->expected, measured.objectives[0]) << "luck is not expected again";
  const std::string yaml = best_yaml(view);
  EXPECT_THAT(yaml, HasSubstr(" measured, 0."));
  EXPECT_THAT(yaml, HasSubstr(" expected: " + view.study.status.best.front().trial));
  EXPECT_THAT(yaml, HasSubstr("\n# " + measured.trial + " measured "));
  const Json json = best_json(view);
  EXPECT_EQ(*json.find("expected"), Json(view.expected_best->expected));
  EXPECT_EQ(*json.find("luckier")->find("trial"), Json(measured.trial));
}

TEST(ExpectedBest, SaysNothingWithoutNoise) {
  RunView view = noisy_view(0);
  const api::BestTrial measured = view.study.status.best.front();
  expect_best(view);
  EXPECT_FALSE(view.expected_best);
  EXPECT_EQ(view.study.status.best.front().trial, measured.trial);
  EXPECT_THAT(best_yaml(view), Not(HasSubstr("expected")));
  EXPECT_EQ(best_json(view).find("expected"), nullptr);
}

TEST(ExpectedBest, ReplicatesTellMore) {
  RunView view = noisy_view(0.1);
  const api::BestTrial measured = view.study.status.best.front();
  view.study.status.best.front().replicates = api::ReplicateResults{2, 0.8, 0.01, 0};
  expect_best(view);
  EXPECT_FALSE(view.expected_best);
  EXPECT_EQ(view.study.status.best.front().trial, measured.trial);
}

TEST(ExpectedBest, LeavesAStudyWithoutTrialsAlone) {
  RunView view = noisy_view(0.1);
  view.trials.clear();
  bring_up_to_date(view);
  expect_best(view);
  EXPECT_FALSE(view.expected_best);
}

}  // namespace
}  // namespace fettle::cli
