// What a status says of a front.
#include "core/best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/study_json.h"
#include "core/ledger.h"

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

TEST(Best, AFrontOfLargePointsIsCutToWhatAnObjectMayHold) {
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

}  // namespace
}  // namespace fettle::core
