// The StudyController: its samplers are caches, so what they say follows from what is stored.
#include "control/study_controller.h"

#include <gtest/gtest.h>

#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

using api::TrialPhase;

// A tpe Study of four trials at once, driven look by look; what becomes of trials is said by hand.
class StudyControllerTest : public testing::Test {
 protected:
  StudyControllerTest() : store_(faults_), runs_(faults_, clock_, all_finish, digits_curve) {
    api::Study study = digits_study();
    study.spec.algorithm.name = "tpe";
    study.spec.algorithm.startup_trials = 1;
    CHECK(store_.create_study(study).ok(), "the Study could not be created");
    CHECK(look().ok(), "no trials were created");
  }

  Result<control::Looked> look() { return controller_.reconcile({"", "digits"}); }

  std::vector<api::TrialPtr> trials() { return store_.list_trials({"", "digits"}).value(); }

  void complete(std::size_t index, double accuracy) {
    api::Trial trial = *trials()[index];
    trial.status.phase = TrialPhase::kCompleted;
    trial.status.report = api::Report{};
    trial.status.report->step = 9;
    trial.status.report->metrics["accuracy"] = accuracy;
    CHECK(store_.update_trial_status(trial).ok(), "the trial could not be completed");
  }

  // The trials created after these must be those that a sampler without a cache suggests.
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
  control::Observer observer_;
  control::StudyController controller_{store_, runs_, clock_, observer_};
};

TEST_F(StudyControllerTest, FactsThatWereNotStoredAreForgotten) {
  complete(1, 0.9);
  complete(2, 0.5);
  store_.fail_writes(1);
  EXPECT_FALSE(look().ok());
  complete(0, 0.1);  // now the first to be written down
  ASSERT_TRUE(look().ok());
  expect_as_without_cache(4);
}

TEST_F(StudyControllerTest, ADeletedTrialDoesNotHideWhatIsLearntAfterwards) {
  complete(0, 0.9);
  complete(1, 0.5);
  ASSERT_TRUE(look().ok());
  ASSERT_EQ(trials().size(), 6u);
  store_.delete_trial("digits-3");  // it had no facts: the history gets longer at its beginning
  complete(2, 0.1);
  ASSERT_TRUE(look().ok());
  expect_as_without_cache(5);
}

}  // namespace
}  // namespace fettle::sim
