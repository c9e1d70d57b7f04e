// The reason and message of a Study's end; tests/plan/study_endings.yaml says when it ends.
#include "core/study/study_end.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace fettle::core {
namespace {

TEST(StudyEnd, TheMessageNamesTheObjectivesThatHaveAGoal) {
  const struct {
    std::optional<double> loss_goal;
    std::optional<double> latency_goal;
    std::string message;
  } cases[] = {
      {0.5, {}, "digits-0 reached the goal with loss 0.25"},
      {{}, 10.0, "digits-0 reached the goal with latency 9"},
      {0.5, 10.0, "digits-0 reached the goal with loss 0.25, latency 9"},
  };
  api::Trial trial;
  trial.metadata.name = "digits-0";
  trial.status.phase = api::TrialPhase::kCompleted;
  trial.status.facts = {{.seq = 1, .kind = api::FactKind::kResult, .values = {0.25, 9.0}}};
  for (const auto& c : cases) {
    api::Study study;
    study.spec.objectives.resize(2);
    study.spec.objectives[0].metric = "loss";
    study.spec.objectives[0].goal = c.loss_goal;
    study.spec.objectives[1].metric = "latency";
    study.spec.objectives[1].goal = c.latency_goal;
    for (api::Objective& objective : study.spec.objectives) {
      objective.direction = api::Direction::kMinimize;
    }
    const Ledger ledger(study, {std::make_shared<api::Trial>(trial)});
    const std::optional<StudyEnd> end = current_end(study, ledger, {});
    ASSERT_TRUE(end.has_value()) << c.message;
    EXPECT_EQ(end->message, c.message);
  }
}

}  // namespace
}  // namespace fettle::core
