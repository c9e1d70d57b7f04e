// The best trials of a Study, and its front.
#include "core/study/best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>

#include "api/study/study_json.h"
#include "core/study/ledger.h"

namespace fettle::core {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

api::Study study_of(std::size_t objectives) {
  api::Study study;
  for (std::size_t i = 0; i < objectives; ++i) {
    study.spec.objectives.emplace_back().metric = "m" + std::to_string(i);
  }
  return study;
}

api::TrialPtr trial_of(std::int64_t index, const std::vector<double>& values,
                       Json parameters = Json::object()) {
  api::Trial trial;
  trial.metadata.name = "s-" + std::to_string(index);
  trial.spec.index = index;
  trial.spec.parameters = std::move(parameters);
  trial.status.phase = api::TrialPhase::kCompleted;
  trial.status.facts = {{.seq = index + 1, .values = {values.begin(), values.end()}}};
  return std::make_shared<api::Trial>(std::move(trial));
}

std::vector<std::string> names_of(const std::vector<api::BestTrial>& best) {
  std::vector<std::string> names;
  for (const api::BestTrial& one : best) names.push_back(one.trial);
  return names;
}

TEST(Best, TheFirstOfEquallyGoodTrialsIsTheBest) {
  const Ledger ledger(study_of(1), {trial_of(0, {3}), trial_of(1, {2}), trial_of(2, {2})});
  EXPECT_THAT(names_of(ledger.best()), ElementsAre("s-1"));
}

TEST(Best, ATrialThatGetsWorseUncoversAnother) {
  const api::Study study = study_of(2);
  std::vector<api::TrialPtr> trials = {trial_of(0, {1, 1}), trial_of(1, {2, 2}),
                                       trial_of(2, {0, 3})};
  Ledger ledger(study, trials);
  EXPECT_THAT(names_of(ledger.best()), ElementsAre("s-2", "s-0"));
  trials[0] = trial_of(0, {5, 5});
  ledger.update(study, trials);
  EXPECT_THAT(names_of(ledger.best()), ElementsAre("s-2", "s-1"));
}

// Its objectives come from the step that it reported last, unasked.
TEST(Best, ATrialThatTrainedOnIsBestAtItsLastStep) {
  api::Trial trial = *trial_of(0, {1});
  trial.status.report.emplace();
  trial.status.report->step = trial.status.facts[0].step + 2;
  const Ledger ledger(study_of(1), {std::make_shared<api::Trial>(trial)});
  ASSERT_EQ(ledger.best().size(), 1U);
  EXPECT_EQ(ledger.best()[0].step, trial.status.report->step);
}

api::TrialPtr stopped_at(std::int64_t index, std::int64_t step, const std::vector<double>& values) {
  api::Trial trial = *trial_of(index, values);
  trial.status.phase = api::TrialPhase::kStopped;
  trial.status.facts[0].kind = api::FactKind::kStopped;
  trial.status.facts[0].step = step;
  return std::make_shared<api::Trial>(std::move(trial));
}

TEST(Best, IsTheBestOfTheFurthestStoppedTrials) {
  const api::Study study = study_of(1);
  std::vector<api::TrialPtr> trials = {stopped_at(0, 1, {0.1}), stopped_at(1, 5, {0.4}),
                                       stopped_at(2, 5, {0.3}), stopped_at(3, 2, {0.2})};
  Ledger ledger(study, trials);
  EXPECT_THAT(names_of(ledger.best()), ElementsAre("s-2"));
  trials[3] = stopped_at(3, 6, {0.2});  // was promoted
  ledger.update(study, trials);
  EXPECT_THAT(names_of(ledger.best()), ElementsAre("s-3"));
  trials.push_back(trial_of(4, {0.9}));
  ledger.update(study, trials);
  EXPECT_THAT(names_of(ledger.best()), ElementsAre("s-4")) << "a result is better than any of them";
  const Ledger front(study_of(2), {stopped_at(0, 1, {0, 0}), stopped_at(1, 5, {1, 2}),
                                   stopped_at(2, 5, {2, 1}), stopped_at(3, 5, {2, 2})});
  EXPECT_THAT(names_of(front.best()), ElementsAre("s-1", "s-2"));
}

TEST(Best, IgnoresStoppedTrialsOutsideAConstraint) {
  api::Study study = study_of(1);
  study.spec.constraints = {{"memory", std::nullopt, 10}};
  api::Trial heavy = *stopped_at(0, 5, {0.1});
  heavy.status.report.emplace().metrics = {{"m0", 0.1}, {"memory", 20}};
  api::Trial light = *stopped_at(1, 5, {0.2});
  light.status.report.emplace().metrics = {{"m0", 0.2}, {"memory", 5}};
  const Ledger ledger(study,
                      {std::make_shared<api::Trial>(heavy), std::make_shared<api::Trial>(light)});
  EXPECT_THAT(names_of(ledger.best()), ElementsAre("s-1"));
}

TEST(Best, AFrontOfLargePointsIsCutToTheLimitOfAnObject) {
  Json parameters = Json::object();
  for (int i = 0; i < 128; ++i) {
    parameters.set("parameter" + std::to_string(i), std::string(256, 'v'));
  }
  std::vector<api::TrialPtr> trials;
  for (int i = 0; i < 200; ++i) {
    const double x = i;
    trials.push_back(trial_of(i, {x, 200 - x}, parameters));
  }
  const api::Study study = study_of(2);
  const Ledger ledger(study, trials);
  api::StudyStatus status;
  status.best = ledger.best();
  EXPECT_LE(api::write_study_status(status).dump().size(), kMaxBestBytes + 4'096);
  EXPECT_THAT(names_of(status.best), ElementsAre("s-0"));

  for (api::TrialPtr& trial : trials) {
    trial = trial_of(trial->spec.index, {1.0 * static_cast<double>(trial->spec.index),
                                         200.0 - static_cast<double>(trial->spec.index)});
  }
  EXPECT_THAT(Ledger(study, trials).best(), SizeIs(kMaxFront)) << "small points are all there";
}

// ---- Replicates --------------------------------------------------------------------------------

// Trials 0, 1 and 2 reached 3, 1 and 2, where less is better; two of them lead.
struct Repeated {
  Repeated() : study(study_of(1)) {
    study.metadata.name = "s";
    study.spec.replicates = {.leaders = 2, .runs = 3};
    trials = {trial_of(0, {3}), trial_of(1, {1}), trial_of(2, {2})};
  }

  void repeat(std::int64_t leader, std::optional<double> value,
              api::FactKind kind = api::FactKind::kResult) {
    const std::int64_t index = std::ssize(trials);
    api::Trial trial = *trial_of(index, {0});
    trial.spec.study = "s";
    trial.spec.search.replicates = "s-" + std::to_string(leader);
    trial.status.facts[0].kind = kind;
    trial.status.facts[0].values = {value};
    trial.status.facts[0].infeasible = !value;
    if (kind == api::FactKind::kFailed) trial.status.phase = api::TrialPhase::kFailed;
    trials.push_back(std::make_shared<api::Trial>(std::move(trial)));
  }

  api::BestTrial best() const { return Ledger(study, trials).best().at(0); }

  api::Study study;
  std::vector<api::TrialPtr> trials;
};

TEST(BestOfReplicates, IsTheMeasuredBestUntilEachLeaderWasRepeated) {
  Repeated repeated;
  EXPECT_EQ(repeated.best().trial, "s-1");
  EXPECT_FALSE(repeated.best().replicates);
  repeated.repeat(1, 9);
  EXPECT_EQ(repeated.best().trial, "s-1") << "s-2 may be worse still";
  EXPECT_EQ(repeated.best().replicates->mean, 9);
  EXPECT_FALSE(repeated.best().replicates->deviation) << "of one value";
  repeated.repeat(2, 8);
  EXPECT_EQ(repeated.best().trial, "s-2");
  EXPECT_THAT(repeated.best().objectives, ElementsAre(2)) << "as it was measured";
  EXPECT_EQ(repeated.best().replicates->mean, 8);
}

TEST(BestOfReplicates, HasMeanAndDeviationOfTheFurtherRunsAlone) {
  Repeated repeated;
  repeated.repeat(2, 5);
  for (const double value : {2.0, 3.0, 7.0}) repeated.repeat(1, value);
  const api::ReplicateResults results = *repeated.best().replicates;
  EXPECT_EQ(results.runs, 3);
  EXPECT_DOUBLE_EQ(*results.mean, 4) << "without the 1 for which it was chosen";
  EXPECT_DOUBLE_EQ(*results.deviation, std::sqrt(7)) << "over n - 1";
  EXPECT_EQ(results.failed, 0);
}

TEST(BestOfReplicates, IsTheFirstOfEqualMeans) {
  Repeated repeated;
  repeated.trials[0] = trial_of(0, {1.5});  // leads in the place of s-2
  repeated.repeat(1, 2);
  repeated.repeat(0, 2);
  EXPECT_EQ(repeated.best().trial, "s-0");
}

TEST(BestOfReplicates, CountsFailuresAndSkipsLeadersWithoutAMean) {
  Repeated repeated;
  repeated.repeat(1, std::nullopt, api::FactKind::kFailed);
  repeated.repeat(1, std::nullopt);
  repeated.repeat(2, 50);
  EXPECT_EQ(repeated.best().trial, "s-2");
  Repeated none;
  none.repeat(1, std::nullopt, api::FactKind::kFailed);
  none.repeat(1, std::nullopt);
  none.repeat(2, std::nullopt, api::FactKind::kFailed);
  EXPECT_EQ(none.best().trial, "s-1") << "the measured best";
  EXPECT_EQ(none.best().replicates, (api::ReplicateResults{0, std::nullopt, std::nullopt, 2}));
}

TEST(BestOfReplicates, IgnoresReplicatesStoppedByTheStudysEnd) {
  Repeated repeated;
  repeated.repeat(1, 5, api::FactKind::kStopped);
  repeated.repeat(2, 0.5, api::FactKind::kStopped);
  EXPECT_EQ(repeated.best().trial, "s-1");
  EXPECT_FALSE(repeated.best().replicates);
}

TEST(BestOfReplicates, IsAmongTheLeadersThatThereAreNow) {
  Repeated repeated;
  repeated.repeat(1, 4);
  repeated.repeat(2, 3);
  EXPECT_EQ(repeated.best().trial, "s-2");
  repeated.trials.push_back(trial_of(5, {0.5}));  // a budget was raised
  EXPECT_EQ(repeated.best().trial, "s-5");
  EXPECT_FALSE(repeated.best().replicates);
  repeated.repeat(5, 6);
  EXPECT_EQ(repeated.best().trial, "s-1") << "s-2 is no leader any more";
}

TEST(BestOfReplicates, HasNoNumberThatAStatusCannotHold) {
  Repeated repeated;
  repeated.repeat(2, 5);
  repeated.repeat(1, -1.7e308);
  repeated.repeat(1, 1.7e308);
  EXPECT_EQ(repeated.best().trial, "s-2") << "the other has no mean";
  repeated.study.spec.replicates->leaders = 1;
  EXPECT_EQ(repeated.best().trial, "s-1");
  EXPECT_EQ(repeated.best().replicates, (api::ReplicateResults{2, std::nullopt, std::nullopt, 0}));
}

}  // namespace
}  // namespace fettle::core
