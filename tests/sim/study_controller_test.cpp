// The StudyController: its samplers are caches, so their suggestions follow from the stored
// objects.
#include "core/control/study_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <thread>

#include "core/conditions.h"
#include "core/replay/replay.h"
#include "core/study/ledger.h"
#include "core/study/problem.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

using api::TrialPhase;
using testing::ElementsAre;
using testing::IsEmpty;

// Acts while a sampler is at work, on a separate thread, like another worker.
class Meanwhile : public control::Observer {
 public:
  void on_suggested(const control::Key&, std::int64_t) override {
    if (!happens) return;
    std::thread other(happens);
    other.join();
  }
  std::function<void()> happens;
};

// A tpe Study of four trials at once; the test reconciles it and sets the results of its trials.
class StudyControllerTest : public testing::Test {
 protected:
  StudyControllerTest() : store_(faults_), runs_(faults_, clock_, all_finish, digits_curve) {
    api::Study study = digits_study();
    study.spec.algorithm.name = api::AlgorithmKind::kTpe;
    study.spec.algorithm.startup_trials = 1;
    CHECK(store_.create_study(study).ok(), "the Study could not be created");
    CHECK(reconcile().ok(), "no trials were created");
  }

  Result<control::ReconcileResult> reconcile() { return controller_.reconcile({"", "digits"}); }

  std::vector<api::TrialPtr> trials() { return store_.list_trials({"", "digits"}).value(); }

  api::Trial completed(std::size_t index, double accuracy) {
    api::Trial trial = *trials()[index];
    trial.status.phase = TrialPhase::kCompleted;
    trial.status.report = api::Report{};
    trial.status.report->step = 9;
    trial.status.report->metrics["accuracy"] = accuracy;
    return trial;
  }
  void complete(std::size_t index, double accuracy) {
    CHECK(store_.update_trial_status(completed(index, accuracy)).ok(), "it was not completed");
  }
  // Ends a trial like the TrialController.
  Result<api::Trial> end(std::size_t index, double accuracy) {
    const api::Study study = store_.get_study({"", "digits"}).value();
    return controller_.store_end(study, completed(index, accuracy));
  }
  // Returns the seq of each of a trial's facts.
  std::vector<std::int64_t> places(std::size_t index) {
    std::vector<std::int64_t> out;
    for (const api::Fact& fact : trials()[index]->status.facts) out.push_back(fact.seq);
    return out;
  }

  // Expects the trials created after these to equal the suggestions of a sampler without a cache.
  void expect_as_without_cache(std::size_t before) {
    api::Study study = store_.get_study({"", "digits"}).value();
    std::vector<api::TrialPtr> earlier = trials();
    const std::vector<api::TrialPtr> later(earlier.begin() + static_cast<std::ptrdiff_t>(before),
                                           earlier.end());
    ASSERT_FALSE(later.empty());
    study.status.trials.created = later.front()->spec.index;
    earlier.resize(before);
    const auto sampler = search::make_sampler(core::problem_of(study)).value();
    const search::Suggestion suggestion =
        sampler->suggest(core::history_of(study, earlier), static_cast<std::int64_t>(later.size()));
    for (std::size_t i = 0; i < later.size(); ++i) {
      EXPECT_EQ(later[i]->spec.parameters.dump(), suggestion.points[i].dump()) << i;
    }
  }

  Faults faults_;
  SimClock clock_;
  SimStore store_;
  SimRuns runs_;
  Meanwhile observer_;
  control::StudyController controller_{store_, runs_, clock_, observer_};
};

TEST_F(StudyControllerTest, FactsThatWereNotStoredAreForgotten) {
  complete(1, 0.9);
  complete(2, 0.5);
  store_.fail_writes(1);
  EXPECT_FALSE(reconcile().ok());
  complete(0, 0.1);  // now the first to be recorded
  ASSERT_TRUE(reconcile().ok());
  expect_as_without_cache(4);
}

TEST_F(StudyControllerTest, TheEndOfATrialIsStoredWithItsFacts) {
  ASSERT_TRUE(end(1, 0.9).ok());
  ASSERT_TRUE(end(0, 0.5).ok());
  EXPECT_THAT(places(1), ElementsAre(1));
  EXPECT_THAT(places(0), ElementsAre(2));
  ASSERT_TRUE(reconcile().ok());
  EXPECT_THAT(places(1), ElementsAre(1)) << "a fact is recorded once";
  expect_as_without_cache(4);
}

// It is unknown whether the failed write was carried out: the next reconcile reads the stored
// objects.
TEST_F(StudyControllerTest, AfterAFailedWriteFactsWaitForAReconcile) {
  store_.fail_writes(1);
  EXPECT_FALSE(end(0, 0.1).ok());
  ASSERT_TRUE(end(1, 0.5).ok());
  EXPECT_THAT(places(1), IsEmpty());
  ASSERT_TRUE(reconcile().ok());
  EXPECT_THAT(places(1), ElementsAre(1));
  ASSERT_TRUE(end(0, 0.1).ok());
  EXPECT_THAT(places(0), ElementsAre(2));
}

TEST_F(StudyControllerTest, ANewControllerLeavesFactsToItsFirstReconcile) {
  control::StudyController fresh(store_, runs_, clock_, observer_);
  const api::Study study = store_.get_study({"", "digits"}).value();
  ASSERT_TRUE(fresh.store_end(study, completed(0, 0.5)).ok());
  EXPECT_THAT(places(0), IsEmpty());
}

TEST_F(StudyControllerTest, TheEndOfATrialDoesNotWaitForASampler) {
  std::vector<std::int64_t> meanwhile;
  observer_.happens = [&] {
    CHECK(end(1, 0.5).ok(), "the end could not be stored");
    meanwhile = places(1);
  };
  complete(0, 0.1);
  ASSERT_TRUE(reconcile().ok());
  EXPECT_THAT(places(0), ElementsAre(1));
  EXPECT_THAT(meanwhile, ElementsAre(2)) << "stored at once, with its fact";
  ASSERT_EQ(trials().size(), 5u);
  EXPECT_EQ(trials()[4]->spec.search.basis, 1) << "the sampler did not know of the second fact";
}

// In every reconcile one trial has ended before, and one ends while the sampler is at work.
TEST_F(StudyControllerTest, DecisionsRestOnTheirBasisThoughTrialsEnd) {
  const auto end_one = [&] {
    const std::vector<api::TrialPtr> all = trials();
    const auto active = std::find_if(all.begin(), all.end(), [](const api::TrialPtr& trial) {
      return !api::is_terminal(trial->status.phase);
    });
    if (active == all.end()) return;
    const double accuracy = digits_curve((*active)->spec.parameters, 9);
    CHECK(end(static_cast<std::size_t>(active - all.begin()), accuracy).ok(), "it did not end");
  };
  observer_.happens = end_one;
  const auto study = [&] { return store_.get_study({"", "digits"}).value(); };
  for (int i = 0; i < 30 && !core::is_finished(study().status); ++i) {
    end_one();
    clock_.advance_to(clock_.now_ms() + 2'000);
    ASSERT_TRUE(reconcile().ok());
  }
  EXPECT_TRUE(core::is_finished(study().status));
  std::set<std::int64_t> seqs;
  for (std::size_t i = 0; i < trials().size(); ++i) {
    ASSERT_EQ(places(i).size(), 1u) << i;
    seqs.insert(places(i).front());
  }
  EXPECT_EQ(seqs.size(), trials().size()) << "no two facts have one seq";
  EXPECT_EQ(*seqs.rbegin(), static_cast<std::int64_t>(trials().size()));
  const auto replay = core::replay(study(), trials());
  ASSERT_TRUE(replay.ok());
  EXPECT_EQ(replay->suggestions, static_cast<std::int64_t>(trials().size()));
  EXPECT_EQ(replay->differences.size(), 0u);
}

TEST_F(StudyControllerTest, UnderANewSpecFactsWaitForAReconcile) {
  api::Study study = store_.get_study({"", "digits"}).value();
  study.spec.budget.trials += 1;
  ASSERT_TRUE(store_.update_study_spec(study).ok());
  ASSERT_TRUE(end(0, 0.5).ok());
  EXPECT_THAT(places(0), IsEmpty());
}

TEST_F(StudyControllerTest, ADeletedTrialDoesNotHideLaterFacts) {
  complete(0, 0.9);
  complete(1, 0.5);
  ASSERT_TRUE(reconcile().ok());
  ASSERT_EQ(trials().size(), 6u);
  store_.delete_trial("digits-3");  // it had no facts: the history grows at its beginning
  complete(2, 0.1);
  ASSERT_TRUE(reconcile().ok());
  expect_as_without_cache(5);
}

// A Study that begins with the results of "digits" so far.
TEST_F(StudyControllerTest, AWarmStartIsWrittenDownOnceAndThenReliedOn) {
  complete(0, 0.2);
  complete(1, 0.9);
  ASSERT_TRUE(reconcile().ok());
  api::Study next = digits_study();
  next.metadata.name = "again";
  next.spec.warm_start = api::WarmStart{.studies = {"digits", "gone"}};
  ASSERT_TRUE(store_.create_study(next).ok());
  const auto reconcile_again = [&] { return controller_.reconcile({"", "again"}); };
  ASSERT_TRUE(reconcile_again().ok());
  const auto stored = [&] { return store_.get_study({"", "again"}).value(); };
  ASSERT_EQ(stored().status.prior_observations.size(), 2u);
  EXPECT_TRUE(core::is_true(stored().status.conditions, "WarmStarted"));
  EXPECT_TRUE(store_.list_trials({"", "again"})->empty());
  complete(2, 0.95);  // too late
  ASSERT_TRUE(reconcile().ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reconcile_again().ok());
  EXPECT_EQ(stored().status.prior_observations.size(), 2u);
  const auto begun = store_.list_trials({"", "again"}).value();
  ASSERT_GE(begun.size(), 2u);
  EXPECT_EQ(begun[0]->spec.parameters, trials()[1]->spec.parameters);
  EXPECT_EQ(begun[1]->spec.parameters, trials()[0]->spec.parameters);
}

// Runs that refuse the Study's template with this message; "" = they accept it.
class CheckingRuns : public SimRuns {
 public:
  using SimRuns::SimRuns;
  Status check(const api::Study&) override {
    ++checks;
    if (refusal.empty()) return success();
    return Error{code, refusal};
  }
  std::string refusal;
  ErrorCode code = ErrorCode::kInvalid;
  int checks = 0;
};

class TemplateCheckTest : public testing::Test {
 protected:
  TemplateCheckTest() {
    CHECK(store_.create_study(digits_study()).ok(), "the Study could not be created");
  }
  Result<control::ReconcileResult> reconcile() { return controller_.reconcile({"", "digits"}); }
  api::Study study() { return store_.get_study({"", "digits"}).value(); }
  std::size_t trials() { return store_.list_trials({"", "digits"}).value().size(); }

  Faults faults_;
  SimClock clock_;
  SimStore store_{faults_};
  CheckingRuns runs_{faults_, clock_, all_finish, digits_curve};
  control::Observer observer_;
  control::StudyController controller_{store_, runs_, clock_, observer_};
};

TEST_F(TemplateCheckTest, AStudyThatCannotStartFailsInTheWordsOfTheCheckAndIsAskedOnce) {
  runs_.refusal = "spec.trial.template: unknown field containrs";
  ASSERT_TRUE(reconcile().ok());
  ASSERT_TRUE(reconcile().ok());
  EXPECT_EQ(runs_.checks, 1);
  EXPECT_EQ(trials(), 0u);
  const api::Study refused = study();
  const api::StatusCondition* failed = core::find_condition(refused.status.conditions, "Failed");
  ASSERT_NE(failed, nullptr);
  EXPECT_TRUE(failed->status);
  EXPECT_EQ(failed->message, runs_.refusal);
}

TEST_F(TemplateCheckTest, AStudyThatWasMendedIsAskedAgainAndGoesOn) {
  runs_.refusal = "no";
  ASSERT_TRUE(reconcile().ok());
  runs_.refusal.clear();
  api::Study mended = study();
  mended.spec.trial.retries += 1;
  ASSERT_TRUE(store_.update_study_spec(mended).ok());
  ASSERT_TRUE(reconcile().ok());
  ASSERT_TRUE(reconcile().ok());
  EXPECT_EQ(runs_.checks, 2);
  EXPECT_GT(trials(), 0u);
  EXPECT_FALSE(core::is_finished(study().status));
}

TEST_F(TemplateCheckTest, AnUnknownVerdictIsAskedAgain) {
  runs_.refusal = "the API server does not answer";
  runs_.code = ErrorCode::kUnavailable;
  EXPECT_FALSE(reconcile().ok());
  EXPECT_FALSE(core::is_finished(study().status));
  runs_.refusal.clear();
  clock_.advance_to(clock_.now_ms() + control::kMinCheckMs);
  ASSERT_TRUE(reconcile().ok());
  EXPECT_GT(trials(), 0u);
}

// Reconciles every tenth of a second, for ten minutes.
TEST_F(TemplateCheckTest, ABlockedStudyIsAskedLessAndLessOften) {
  runs_.refusal = "the API server does not answer";
  runs_.code = ErrorCode::kUnavailable;
  const auto look_for = [&](std::int64_t ms) {
    for (std::int64_t i = 0; i < ms; i += 100) {
      const auto looked = reconcile();
      ASSERT_FALSE(looked.ok());
      EXPECT_EQ(looked.error().message, runs_.refusal) << "between two checks the refusal stands";
      clock_.advance_to(clock_.now_ms() + 100);
    }
  };
  look_for(control::kMinCheckMs);
  EXPECT_EQ(runs_.checks, 1);
  look_for(600'000);
  EXPECT_LE(runs_.checks, 6 + 600'000 / control::kMaxCheckMs);
  EXPECT_GE(runs_.checks, 600'000 / control::kMaxCheckMs) << "but it is asked";
  runs_.refusal.clear();
  clock_.advance_to(clock_.now_ms() + control::kMaxCheckMs);
  EXPECT_TRUE(reconcile().ok());
  EXPECT_GT(trials(), 0u);
}

TEST_F(TemplateCheckTest, ABlockedStudyThatIsChangedIsAskedAtOnce) {
  runs_.refusal = "quota exceeded";
  runs_.code = ErrorCode::kForbidden;
  EXPECT_FALSE(reconcile().ok());
  runs_.refusal.clear();
  EXPECT_FALSE(reconcile().ok());
  api::Study mended = study();
  mended.spec.trial.retries += 1;
  ASSERT_TRUE(store_.update_study_spec(mended).ok());
  ASSERT_TRUE(reconcile().ok());
  EXPECT_GT(trials(), 0u);
}

}  // namespace
}  // namespace fettle::sim
