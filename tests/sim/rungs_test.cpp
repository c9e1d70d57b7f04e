// Programs that miss the rungs of their Study: they report at every second or third step, exit with
// 0 too early, or never report. Under every algorithm and every rule with rungs, the search waits
// for no trial that will not come, each trial ends with a true reason, and so does the Study.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/conditions.h"
#include "core/facts/history.h"
#include "core/replay/replay.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

using api::FactKind;
using api::TrialPhase;
using testing::HasSubstr;

struct SearchCase {
  std::string algorithm;
  std::string early_stopping;  // "" = none
  bool promote = false;

  std::string name() const { return algorithm + early_stopping + (promote ? "Promoting" : ""); }
};

std::vector<SearchCase> searches() {
  return {{"random", "asha", false},
          {"random", "asha", true},
          {"random", "median"},
          {"random", "percentile"},
          {"random", "patience"},
          {"random", "curve"},
          {"hyperband", ""},
          {"bohb", ""},
          {"pbt", ""},
          {"pb2", ""}};
}

// Rungs are at 3 and 9; for populations, every 3 steps.
api::Study study_of(const SearchCase& search) {
  api::Study study = digits_study();
  study.spec.resource.min = 3;
  study.spec.budget.trials = 9;
  study.spec.budget.parallelism = 3;
  study.spec.algorithm.name = *api::from_string<api::AlgorithmKind>(search.algorithm);
  study.spec.algorithm.startup_trials = 3;
  if (!search.early_stopping.empty()) {
    study.spec.early_stopping =
        api::EarlyStopping{.name = *api::from_string<api::StoppingKind>(search.early_stopping)};
    study.spec.early_stopping->promote = search.promote;
  }
  return study;
}

std::string message_of(const api::Study& study) {
  for (const char* type : {"Succeeded", "Failed"}) {
    const api::StatusCondition* said = core::find_condition(study.status.conditions, type);
    if (said != nullptr && said->status) return type + (": " + said->message);
  }
  return "";
}

// Also expects that a replay decides the same.
void expect_all_ended(Simulation& simulation) {
  const Result<core::Replay> again = core::replay(simulation.study(), simulation.trials());
  ASSERT_TRUE(again.ok()) << again.error().message;
  for (const core::Difference& difference : again->differences) {
    ADD_FAILURE() << difference.trial << ": " << difference.recorded << "; " << difference.decided;
  }
  for (const api::TrialPtr& trial : simulation.trials()) {
    SCOPED_TRACE(trial->metadata.name);
    EXPECT_TRUE(api::is_terminal(trial->status.phase));
    const api::Fact* end = core::newest_end(*trial);
    ASSERT_NE(end, nullptr);
    const std::int64_t reported = trial->status.report ? trial->status.report->step : 0;
    EXPECT_EQ(end->step, reported) << "a fact says the step that was really reached";
  }
}

class Rude : public testing::TestWithParam<SearchCase> {};

TEST_P(Rude, AProgramThatReportsEverySecondStepIsSearchedLikeAnyOther) {
  const auto every_second = [](std::int64_t, std::int64_t) { return Script{.every = 2}; };
  Simulation simulation(study_of(GetParam()), every_second);
  simulation.run_to_end();
  const api::StudyStatus status = simulation.study().status;
  EXPECT_EQ(status.trials.failed, 0);
  EXPECT_GT(status.trials.completed, 0);
  EXPECT_THAT(message_of(simulation.study()), HasSubstr("Succeeded: "));
  EXPECT_THAT(message_of(simulation.study()), HasSubstr("no trial reported epoch 9"));
  ASSERT_EQ(status.best.size(), 1u);
  EXPECT_EQ(status.best[0].step, 8);
  expect_all_ended(simulation);
}

TEST_P(Rude, AProgramReportingEveryThirdStepIsSearchedAsWell) {
  const auto every_third = [](std::int64_t, std::int64_t) { return Script{.every = 3}; };
  Simulation sparse(study_of(GetParam()), every_third);
  sparse.run_to_end();
  EXPECT_EQ(sparse.study().status.best.at(0).step, 9);
  EXPECT_EQ(sparse.study().status.trials.failed, 0);
  expect_all_ended(sparse);
}

// One member exits early: it has its own patience, or its data has ended.
TEST_P(Rude, AnEarlyExitIsJudgedByItsReports) {
  const auto one_quits = [](std::int64_t index, std::int64_t) {
    return index == 1 ? Script{Fate::kQuit, 1} : Script{};
  };
  Simulation simulation(study_of(GetParam()), one_quits);
  simulation.run_to_end();
  const api::StudyStatus status = simulation.study().status;
  EXPECT_EQ(status.best.at(0).step, 9);
  EXPECT_EQ(status.trials.failed, 0);
  EXPECT_GT(status.trials.completed, 0);
  expect_all_ended(simulation);
}

TEST_P(Rude, ASilentProgramFailsWithoutDelayingOthers) {
  const auto one_is_silent = [](std::int64_t index, std::int64_t) {
    return index == 1 ? Script{Fate::kSilent, 0} : Script{};
  };
  Simulation simulation(study_of(GetParam()), one_is_silent);
  simulation.run_to_end();
  EXPECT_EQ(simulation.study().status.best.at(0).step, 9);
  EXPECT_EQ(simulation.trials()[1]->status.phase, TrialPhase::kFailed);
  expect_all_ended(simulation);
}

TEST_P(Rude, AStudyReportsThatNoTrialReachedTheEnd) {
  const auto all_quit = [](std::int64_t, std::int64_t) { return Script{Fate::kQuit, 2}; };
  Simulation simulation(study_of(GetParam()), all_quit);
  simulation.run_to_end();
  EXPECT_THAT(message_of(simulation.study()), HasSubstr("reported epoch 9"));
  expect_all_ended(simulation);
}

// The best trial at step 3 always breaks down on the way to 9.
TEST_P(Rude, WhereTheBestBreakDownOthersGetToTheEnd) {
  if (!GetParam().promote) return;
  api::Study study = study_of(GetParam());
  study.spec.budget.failures = 8;
  const auto some_fail = [](std::int64_t index, std::int64_t run) {
    return run >= 1 && index % 3 != 0 ? Script{Fate::kFail, 1} : Script{};
  };
  Simulation simulation(study, some_fail);
  simulation.run_to_end();
  EXPECT_GT(simulation.study().status.trials.completed, 0);
  expect_all_ended(simulation);
}

INSTANTIATE_TEST_SUITE_P(Searches, Rude, testing::ValuesIn(searches()),
                         [](const auto& tested) { return tested.param.name(); });

}  // namespace
}  // namespace fettle::sim
