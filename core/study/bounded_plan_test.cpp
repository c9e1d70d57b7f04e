// Plans of Studies with a thousand trials: no plan has more than kMaxWrites writes, and together
// the plans do the same as one plan without a bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <variant>

#include "core/conditions.h"
#include "core/facts/run_records.h"
#include "core/study/study_plan.h"
#include "core/testing/fake_sampler.h"

namespace fettle::core {
namespace {

using api::Trial;
using api::TrialPhase;
using api::TrialPtr;

class BoundedPlanTest : public testing::Test {
 protected:
  static constexpr std::int64_t kTrials = 1'000;

  BoundedPlanTest() {
    api::Parameter x;
    x.name = "x";
    x.max = 1;
    api::Objective accuracy;
    accuracy.metric = "accuracy";
    accuracy.direction = api::Direction::kMaximize;
    study_.metadata.name = "s";
    study_.metadata.generation = 1;
    study_.spec.parameters = {x};
    study_.spec.objectives = {accuracy};
    study_.spec.algorithm.name = api::AlgorithmKind::kRandom;
    study_.spec.resource.max = 9;
    study_.spec.budget.trials = kTrials;
    study_.spec.budget.parallelism = kTrials;
  }

  // Reconciles once. Returns whether the plan was cut.
  bool look() {
    now_ms_ += 1'000;
    StudyPlan facts = plan_facts({study_, trials_, {}}, ledger_, now_ms_);
    carry_out(facts);
    if (facts.is_cut) return true;
    StudyPlan decisions = plan_decisions({study_, trials_, {}}, sampler_, ledger_, now_ms_);
    carry_out(decisions);
    return decisions.is_cut;
  }
  // Reconciles until a plan is not cut; returns how many were cut.
  int look_until_done() {
    int cut = 0;
    while (look()) ++cut;
    return cut;
  }

  template <class Edit>
  void edit_all(const Edit& edit) {
    for (TrialPtr& trial : trials_) {
      Trial next = *trial;
      edit(next);
      trial = std::make_shared<const Trial>(std::move(next));
    }
  }
  void begin_all() {
    edit_all([this](Trial& trial) {
      append_run(trial.status, trial.spec, now_ms_).running_ms = now_ms_;
      trial.status.phase = TrialPhase::kRunning;
    });
  }
  void report_all(std::int64_t step) {
    edit_all([&](Trial& trial) {
      api::Report& report = trial.status.report.emplace();
      report.step = step;
      report.metrics["accuracy"] = static_cast<double>(trial.spec.index) / kTrials;
    });
  }
  std::int64_t count(bool (*holds)(const Trial&)) const {
    return std::ranges::count_if(trials_, [&](const TrialPtr& trial) { return holds(*trial); });
  }

  api::Study study_;
  std::vector<TrialPtr> trials_;
  Ledger ledger_;
  FakeSampler sampler_{10'000};
  std::int64_t now_ms_ = 1'000'000;

 private:
  void carry_out(const StudyPlan& plan) {
    std::int64_t writes = 0;
    for (const StudyAction& action : plan.actions) {
      if (!std::holds_alternative<Note>(action)) ++writes;
      carry_out(action);
    }
    EXPECT_LE(writes, kMaxWrites + 1) << "the status may come on top";
    EXPECT_TRUE(!plan.is_cut || plan.wake_at_ms == now_ms_);
  }
  void carry_out(const StudyAction& action) {
    if (const auto* create = std::get_if<CreateTrial>(&action)) {
      trials_.push_back(std::make_shared<const Trial>(create->trial));
    } else if (const auto* record = std::get_if<RecordFacts>(&action)) {
      edit(record->trial, [record](Trial& trial) {
        auto& facts = trial.status.facts;
        facts.insert(facts.end(), record->facts.begin(), record->facts.end());
      });
    } else if (const auto* update = std::get_if<UpdateTrialSpec>(&action)) {
      edit(update->trial, [update](Trial& trial) { trial.spec = update->spec; });
    } else if (const auto* status = std::get_if<UpdateStudyStatus>(&action)) {
      study_.status = status->status;
    }
  }
  template <class Edit>
  void edit(const std::string& name, const Edit& edit) {
    const auto found = std::ranges::find_if(
        trials_, [&](const TrialPtr& trial) { return trial->metadata.name == name; });
    ASSERT_NE(found, trials_.end()) << name;
    Trial next = **found;
    edit(next);
    *found = std::make_shared<const Trial>(std::move(next));
  }
};

TEST_F(BoundedPlanTest, AThousandTrialsAreCreatedFiftyAtATime) {
  EXPECT_TRUE(look());
  EXPECT_EQ(std::ssize(trials_), kMaxWrites);
  EXPECT_EQ(study_.status.trials.pending, kMaxWrites) << "the status tells how far it has come";
  look_until_done();
  ASSERT_EQ(std::ssize(trials_), kTrials);
  for (std::int64_t i = 0; i < kTrials; ++i) {
    const Trial& trial = *trials_[static_cast<std::size_t>(i)];
    EXPECT_EQ(trial.spec.index, i);
    EXPECT_EQ(*trial.spec.parameters.find("x"), Json(static_cast<double>(i + 1) / 100));
  }
}

TEST_F(BoundedPlanTest, AnExhaustedSpaceDoesNotCutThePlan) {
  sampler_ = FakeSampler(60);
  EXPECT_TRUE(look());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(look()) << "or it would plan again at once, for nothing";
    EXPECT_EQ(std::ssize(trials_), 60);
  }
}

TEST_F(BoundedPlanTest, FactsOfAThousandTrialsComeBeforeTheDecisionsOnThem) {
  look_until_done();
  begin_all();
  edit_all([](Trial& trial) { trial.status.phase = TrialPhase::kFailed; });
  study_.spec.budget.failures = 2 * kTrials;
  EXPECT_TRUE(look());
  EXPECT_FALSE(is_finished(study_.status)) << "most facts are not recorded yet";
  look_until_done();
  std::int64_t seq = 0;
  for (const TrialPtr& trial : trials_) {
    ASSERT_EQ(trial->status.facts.size(), 1u) << trial->metadata.name;
    EXPECT_EQ(trial->status.facts.front().seq, ++seq);
  }
  EXPECT_TRUE(is_finished(study_.status));
}

TEST_F(BoundedPlanTest, StopsOfAThousandTrialsAreFiftyAtATime) {
  look_until_done();
  begin_all();
  study_.spec.objectives.front().goal = 0.5;
  study_.metadata.generation = 2;
  edit_all([](Trial& trial) {
    if (trial.spec.index != 7) return;
    api::Report& report = trial.status.report.emplace();
    report.step = 9;
    report.metrics["accuracy"] = 0.9;
    report.final_result = true;
    trial.status.runs.back().outcome = api::Outcome::kSucceeded;
    trial.status.phase = TrialPhase::kCompleted;
  });
  EXPECT_GE(look_until_done(), kTrials / kMaxWrites - 1);
  EXPECT_EQ(count([](const Trial& trial) { return trial.spec.stop.has_value(); }), kTrials - 1);
  EXPECT_FALSE(is_finished(study_.status)) << "they have not ended yet";
}

TEST_F(BoundedPlanTest, ASuspensionReachesAllTrials) {
  look_until_done();
  begin_all();
  study_.spec.suspend = true;
  EXPECT_GE(look_until_done(), kTrials / kMaxWrites - 1);
  EXPECT_EQ(count([](const Trial& trial) { return trial.spec.suspend; }), kTrials);
}

// All trials reach a rung in one reconcile: the verdicts are the same as without a bound.
TEST_F(BoundedPlanTest, VerdictsDoNotDependOnTheBound) {
  study_.spec.early_stopping.emplace().name = api::StoppingKind::kAsha;
  look_until_done();
  begin_all();
  report_all(1);
  EXPECT_GE(look_until_done(), kTrials / kMaxWrites - 1);
  std::int64_t stopped = 0;
  for (const TrialPtr& trial : trials_) {
    ASSERT_EQ(trial->status.facts.size(), 1u);
    if (!trial->spec.stop) continue;
    ++stopped;
    EXPECT_EQ(trial->spec.stop->basis, trial->status.facts.front().seq)
        << "judged by what was known when its rung became a fact";
  }
  // Each trial is better than all before it, so that none is stopped at its rung, one by one.
  EXPECT_EQ(stopped, 0);
  report_all(3);
  edit_all([](Trial& trial) {
    trial.status.report->metrics["accuracy"] = 1 - static_cast<double>(trial.spec.index) / kTrials;
  });
  look_until_done();
  stopped = count([](const Trial& trial) { return trial.spec.stop.has_value(); });
  EXPECT_GT(stopped, kTrials / 2) << "now each is worse than those before it";
}

}  // namespace
}  // namespace fettle::core
