// When a search period is written, and which of its fields may change.
#include "core/study/search_period.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <variant>

#include "core/conditions.h"
#include "core/plan.h"
#include "core/study/problem.h"
#include "search/rungs/promotion.h"
#include "search/study_problem.h"

namespace fettle::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SettledSearchTest : public testing::Test {
 protected:
  SettledSearchTest() {
    api::Parameter x;
    x.name = "x";
    x.max = 1;
    api::Objective loss;
    loss.metric = "loss";
    study_.metadata.name = "s";
    study_.metadata.generation = 1;
    study_.spec.parameters = {x};
    study_.spec.objectives = {loss};
    study_.spec.budget.trials = 60;
  }

  void add_trial() {
    api::Trial trial;
    trial.spec.study = "s";
    trial.spec.index = static_cast<std::int64_t>(trials_.size());
    trial.metadata.name = "s-" + std::to_string(trial.spec.index);
    trial.spec.parameters = Json::object({{"x", 0.5}});
    trials_.push_back(std::make_shared<const api::Trial>(std::move(trial)));
  }

  // Carries out the plan of a search period; returns whether one was needed.
  bool settle(const std::string& machine = "one") {
    const Ledger ledger(study_, trials_);
    if (!needs_search_period(study_, ledger, machine)) return false;
    for (const StudyAction& action : plan_search_period(study_, ledger, machine, place_).actions) {
      if (const auto* update = std::get_if<UpdateStudyStatus>(&action)) {
        study_.status = update->status;
      } else {
        notes_.push_back(std::get<Note>(action).event.reason);
      }
    }
    EXPECT_FALSE(needs_search_period(study_, ledger, machine)) << "once is enough";
    return true;
  }

  const api::SearchPeriod& last() const { return study_.status.search.back(); }

  api::Study study_;
  api::Place place_ = api::Place::kLocal;
  std::vector<api::TrialPtr> trials_;
  std::vector<std::string> notes_;
};

TEST_F(SettledSearchTest, IsWrittenBeforeTheFirstTrial) {
  ASSERT_TRUE(settle());
  ASSERT_EQ(study_.status.search.size(), 1U);
  EXPECT_EQ(last().since, 0);
  EXPECT_EQ(last().algorithm, "portfolio");
  EXPECT_EQ(last().trials, 60);
  EXPECT_EQ(last().computed_by, "one");
  EXPECT_THAT(last().reason, HasSubstr("fewest trials"));
  EXPECT_EQ(problem_of(study_).chosen, api::AlgorithmKind::kPortfolio);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(SettledSearchTest, OfAStudyOfAnEarlierVersionHoldsFromItsBeginning) {
  for (int i = 0; i < 5; ++i) add_trial();
  ASSERT_TRUE(settle());
  EXPECT_EQ(last().since, 0);
}

// The decisions of an earlier version must follow from the history as before.
TEST_F(SettledSearchTest, AStudyKeepsTheRevisionThatItBeganWith) {
  ASSERT_TRUE(settle());
  EXPECT_EQ(last().revision, search::kNewestRevision);
  EXPECT_EQ(problem_of(study_).revision, search::kNewestRevision);
  add_trial();
  study_.status.search.back().revision.reset();  // as an earlier version wrote it
  EXPECT_EQ(problem_of(study_).revision, search::kFirstRevision);
  ASSERT_TRUE(settle("another"));
  EXPECT_EQ(problem_of(study_).revision, search::kFirstRevision);
  study_.spec.budget.trials = 70;
  ASSERT_TRUE(settle("another"));
  EXPECT_EQ(last().revision, search::kFirstRevision);
}

TEST_F(SettledSearchTest, TrialsOfAnEarlierVersionHaveTheFirstRevision) {
  add_trial();
  ASSERT_TRUE(settle());
  EXPECT_EQ(last().revision, search::kFirstRevision);
}

TEST_F(SettledSearchTest, OnlyTheNumberOfTrialsIsAskedAgain) {
  ASSERT_TRUE(settle());
  add_trial();
  study_.spec.budget.parallelism = 50;
  study_.spec.budget.wall_time = 100;
  EXPECT_FALSE(settle());
  study_.spec.budget.trials = 3000;  // more than a Gaussian process is worth its cost for
  ASSERT_TRUE(settle());
  EXPECT_EQ(study_.status.search.size(), 2U);
  EXPECT_EQ(last().since, 1);
  EXPECT_EQ(last().algorithm, "tpe");
  EXPECT_THAT(last().steps, testing::Not(HasSubstr("limits the work")));
  EXPECT_THAT(notes_, ElementsAre("SearchChanged"));
}

TEST_F(SettledSearchTest, RestsWhileTheStudyDoes) {
  study_.spec.suspend = true;
  EXPECT_FALSE(settle());
  study_.spec.suspend = false;
  study_.metadata.deleted_ms = 1;
  EXPECT_FALSE(settle());
}

TEST_F(SettledSearchTest, APeriodWithoutTrialsIsReplaced) {
  ASSERT_TRUE(settle());
  study_.spec.budget.trials = 61;
  ASSERT_TRUE(settle());
  ASSERT_EQ(study_.status.search.size(), 1U);
  EXPECT_EQ(last().trials, 61);
}

TEST_F(SettledSearchTest, NamesEachMachineUpToALimit) {
  for (int i = 0; i < 40; ++i) {
    settle(i % 2 == 0 ? "one" : "another");
    add_trial();
  }
  EXPECT_EQ(study_.status.search.size(), api::kMostSearchPeriods / 2);
  for (int i = 0; i < 40; ++i) {
    ++study_.spec.budget.trials;
    settle();
    add_trial();
  }
  EXPECT_EQ(study_.status.search.size(), api::kMostSearchPeriods);
  EXPECT_TRUE(notes_.empty()) << "it is the same algorithm all the time";
}

TEST_F(SettledSearchTest, OfAnAlgorithmThatIsNotKnownHereIsMadeAnew) {
  ASSERT_TRUE(settle());
  add_trial();
  study_.status.search.back().algorithm = "simplex";  // of a newer version
  EXPECT_EQ(problem_of(study_).chosen, std::nullopt);
  ASSERT_TRUE(settle());
  EXPECT_EQ(last().algorithm, "portfolio");
  EXPECT_THAT(notes_, ElementsAre("SearchChanged"));
}

TEST_F(SettledSearchTest, AutoPromotesOnlyWhereCheckpointsOutliveAPod) {
  study_.spec.trial.trainer.emplace();
  study_.spec.resource.max = 27;
  study_.spec.budget.gpu_hours = 40;
  const struct {
    api::Place place;
    bool has_claim;
    const char* algorithm;
    const char* rule;
  } cases[] = {{api::Place::kLocal, false, "bohb", ""},
               {api::Place::kCluster, true, "bohb", ""},
               {api::Place::kCluster, false, "portfolio", "asha"}};
  for (const auto& c : cases) {
    place_ = c.place;
    study_.status.search.clear();
    study_.spec.trial.checkpoints.reset();
    if (c.has_claim) study_.spec.trial.checkpoints.emplace().size = 1e9;
    ASSERT_TRUE(settle());
    EXPECT_EQ(last().algorithm, c.algorithm);
    EXPECT_EQ(last().early_stopping, c.rule);
    EXPECT_EQ(last().durable_checkpoints, c.place == api::Place::kLocal || c.has_claim);
    EXPECT_EQ(search::promotes(problem_of(study_)), *c.rule == '\0')
        << "the problem is the period's";
    EXPECT_THAT(notes_, testing::IsEmpty()) << "auto has chosen what suits the place";
  }
  study_.spec.budget.trials = 80;
  ++study_.metadata.generation;
  add_trial();
  ASSERT_TRUE(settle());
  EXPECT_EQ(last().early_stopping, "asha") << "a raised budget changes nothing about steps";
}

TEST_F(SettledSearchTest, APromotingAlgorithmIsToldThatNothingKeepsItsCheckpoints) {
  study_.spec.trial.trainer.emplace();
  study_.spec.resource.max = 27;
  study_.spec.algorithm.name = api::AlgorithmKind::kHyperband;
  ASSERT_TRUE(settle());
  EXPECT_THAT(notes_, testing::IsEmpty());
  study_.status.search.clear();
  place_ = api::Place::kCluster;
  ASSERT_TRUE(settle());
  EXPECT_THAT(notes_, ElementsAre(kNoDurableCheckpoints));
}

}  // namespace
}  // namespace fettle::core
