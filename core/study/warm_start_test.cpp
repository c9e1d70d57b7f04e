// The observations of earlier Studies that are recorded when a new Study begins.
#include "core/study/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "core/conditions.h"

namespace fettle::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

api::Study study_called(const std::string& name) {
  api::Study out;
  api::Parameter x;
  x.name = "x";
  x.max = 1;
  api::Objective loss;
  loss.metric = "loss";
  out.metadata.name = name;
  out.spec.parameters = {x};
  out.spec.objectives = {loss};
  return out;
}

api::Study beginner() {
  api::Study out = study_called("new");
  out.spec.warm_start = api::WarmStart{.studies = {"old"}};
  return out;
}

// A trial at x with this loss, learnt at time `at_ms`.
api::TrialPtr ended(std::int64_t index, double x, std::optional<double> loss,
                    std::int64_t at_ms = 0) {
  api::Trial trial;
  trial.metadata.name = "old-" + std::to_string(index);
  trial.spec.index = index;
  trial.spec.parameters = Json::object({{"x", x}});
  api::Fact fact;
  fact.seq = index + 1;
  fact.values = {loss};
  fact.infeasible = !loss;
  fact.at_ms = at_ms;
  trial.status.facts = {fact};
  return std::make_shared<const api::Trial>(std::move(trial));
}

EarlierStudy earlier(std::vector<api::TrialPtr> trials) {
  return {"old", study_called("old"), std::move(trials), ""};
}

api::StudyStatus status_after(const api::Study& study, const std::vector<EarlierStudy>& from) {
  const StudyPlan plan = plan_warm_start(study, from, 1000);
  EXPECT_THAT(plan.actions, SizeIs(2));
  return std::get<UpdateStudyStatus>(plan.actions.at(0)).status;
}

EventNote event_after(const api::Study& study, const std::vector<EarlierStudy>& from) {
  return std::get<Note>(plan_warm_start(study, from, 1000).actions.at(1)).event;
}

std::string message_of(const api::StudyStatus& status) {
  const api::StatusCondition* condition = find_condition(status.conditions, "WarmStarted");
  return condition == nullptr ? "" : condition->message;
}

TEST(WarmStart, WritesDownFeasibleResults) {
  const auto status = status_after(
      beginner(), {earlier({ended(0, 0.5, 3), ended(1, 0.25, std::nullopt), ended(2, 0.75, 2)})});
  ASSERT_THAT(status.prior_observations, SizeIs(2));
  EXPECT_EQ(status.prior_observations[0].trial, "old-0");
  EXPECT_EQ(status.prior_observations[1].parameters.dump(), R"({"x":0.75})");
  EXPECT_THAT(status.prior_observations[1].values, ElementsAre(2));
  EXPECT_TRUE(is_true(status.conditions, "WarmStarted"));
  EXPECT_EQ(message_of(status), "begins with results of trials: 2 of old");
}

TEST(WarmStart, TakesAPointThatWasRepeatedOnce) {
  api::Trial again = *ended(1, 0.5, 3.1);
  again.spec.search.replicates = "old-0";
  const auto status = status_after(
      beginner(), {earlier({ended(0, 0.5, 3), std::make_shared<const api::Trial>(again)})});
  ASSERT_THAT(status.prior_observations, SizeIs(1));
  EXPECT_EQ(status.prior_observations[0].trial, "old-0");
}

TEST(WarmStart, IsDoneOnceBeforeTheFirstTrial) {
  api::Study study = beginner();
  EXPECT_TRUE(needs_priors(study, {}));
  EXPECT_FALSE(needs_priors(study, {ended(0, 0.5, 1)}));
  EXPECT_FALSE(needs_priors(study_called("new"), {}));
  study.spec.suspend = true;
  EXPECT_FALSE(needs_priors(study, {}));
  study.spec.suspend = false;
  study.status = status_after(study, {{"old", {}, {}, "there is no study old"}});
  EXPECT_FALSE(needs_priors(study, {}));
}

TEST(WarmStart, NamesMissingResultsAndContinues) {
  const std::vector<EarlierStudy> from = {{"old", {}, {}, "there is no study old"}};
  const auto status = status_after(beginner(), from);
  EXPECT_THAT(status.prior_observations, SizeIs(0));
  EXPECT_NE(find_condition(status.conditions, "WarmStarted"), nullptr);
  EXPECT_FALSE(is_true(status.conditions, "WarmStarted"));
  EXPECT_EQ(message_of(status), "nothing is learnt from old: there is no study old");
  EXPECT_EQ(event_after(beginner(), from).type, EventType::kWarning);
}

TEST(WarmStart, NeedsTheSameObjectives) {
  EarlierStudy other = earlier({ended(0, 0.5, 1)});
  other.study->spec.objectives[0].direction = api::Direction::kMaximize;
  EXPECT_THAT(message_of(status_after(beginner(), {other})), HasSubstr("in the other direction"));
  other.study->spec.objectives[0].metric = "accuracy";
  EXPECT_THAT(message_of(status_after(beginner(), {other})), HasSubstr("has no objective loss"));
}

TEST(WarmStart, FindsObjectivesInAnyOrder) {
  EarlierStudy other = earlier({ended(0, 0.5, 1)});
  api::Objective first;
  first.metric = "time";
  other.study->spec.objectives.insert(other.study->spec.objectives.begin(), first);
  auto trial = std::make_shared<api::Trial>(*other.trials[0]);
  trial->status.facts[0].values = {60.0, 0.125};
  other.trials = {trial};
  EXPECT_THAT(status_after(beginner(), {other}).prior_observations.at(0).values,
              ElementsAre(0.125));
}

TEST(WarmStart, SaysHowManyLieOutside) {
  api::Study study = beginner();
  study.spec.parameters[0].max = 0.5;
  const auto status = status_after(study, {earlier({ended(0, 0.4, 1), ended(1, 0.9, 2)})});
  EXPECT_EQ(message_of(status),
            "begins with results of trials: 1 of old (1 more lie outside this space)");
}

TEST(WarmStart, KnowsParametersUnderOtherNames) {
  api::Study study = beginner();
  study.spec.parameters[0].name = "rate";
  study.spec.warm_start->map = {{"rate", "x"}};
  EXPECT_EQ(
      status_after(study, {earlier({ended(0, 0.5, 1)})}).prior_observations.at(0).parameters.dump(),
      R"({"rate":0.5})");
}

TEST(WarmStart, KeepsTheBestAndTheNewest) {
  std::vector<api::TrialPtr> trials;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const auto loss = static_cast<double>(i < 500 ? i : 2000 - i);  // the first 100 are the best
    trials.push_back(ended(i, static_cast<double>(i) / 1000, loss, i));
  }
  const auto status = status_after(beginner(), {earlier(trials)});
  ASSERT_THAT(status.prior_observations, SizeIs(api::kMaxPriorObservations));
  EXPECT_EQ(status.prior_observations[99].trial, "old-99");
  EXPECT_EQ(status.prior_observations[100].trial, "old-900");
  EXPECT_THAT(message_of(status), HasSubstr("the best and the newest 200 are kept"));
}

api::Study with_known(const std::vector<const char*>& known) {
  api::Study out = study_called("new");
  out.spec.warm_start = api::WarmStart{};
  out.spec.warm_start->results = "old.jsonl";
  for (const char* const text : known) {
    out.spec.warm_start->known.push_back(parse_json(text).value());
  }
  return out;
}

TEST(WarmStart, LearnsFromResultsFromElsewhere) {
  api::Study study = with_known({
      R"({"parameters": {"lr": 0.25}, "values": {"loss": 3, "memory": 1}, "name": "optuna-1"})",
      R"({"parameters": {"lr": 0.5}, "values": {"loss": 2}, "step": 9})",
      R"({"parameters": {"lr": 0.5}, "values": {"loss": 1}, "step": 8})",
      R"({"parameters": {"lr": 0.5}, "values": {"loss": 1}, "stopped": true})",
      R"({"parameters": {"lr": 7}, "values": {"loss": 1}})",
      R"({"parameters": {"lr": 0.5}, "values": {"accuracy": 1}})",
      R"({"parameters": {"lr": 0.5}, "values": {"loss": 1, "memory": 9}})",
  });
  study.spec.warm_start->map = {{"x", "lr"}};
  study.spec.resource.max = 9;
  study.spec.constraints = {{"memory", std::nullopt, 8}};
  EXPECT_TRUE(needs_priors(study, {}));
  const auto status = status_after(study, {});
  ASSERT_THAT(status.prior_observations, SizeIs(2));
  EXPECT_EQ(status.prior_observations[0].trial, "optuna-1");
  EXPECT_EQ(status.prior_observations[0].parameters.dump(), R"({"x":0.25})");
  EXPECT_THAT(status.prior_observations[1].values, ElementsAre(2));
  EXPECT_EQ(message_of(status),
            "begins with results of trials: 2 of old.jsonl (1 more lie outside this space, 2 ended "
            "before epoch 9, 2 have no feasible value of each objective)");
}

TEST(WarmStart, CountsResultsFromElsewhereAsTheOldest) {
  api::Study study = with_known({R"({"parameters": {"x": 0.25}, "values": {"loss": 3}})"});
  study.spec.warm_start->studies = {"old"};
  const auto status = status_after(study, {earlier({ended(0, 0.5, 1, 5)})});
  ASSERT_THAT(status.prior_observations, SizeIs(2));
  EXPECT_EQ(status.prior_observations[0].parameters.dump(), R"({"x":0.25})");
  EXPECT_EQ(status.prior_observations[1].trial, "old-0");
}

TEST(WarmStart, SaysThatAClusterReadsNoFiles) {
  const api::Study study = with_known({});
  EXPECT_TRUE(needs_priors(study, {}));
  const auto status = status_after(study, {});
  EXPECT_FALSE(is_true(status.conditions, "WarmStarted"));
  EXPECT_THAT(message_of(status), HasSubstr("nothing is learnt from old.jsonl: a cluster does not "
                                            "read files; apply the Study with fettle run"));
}

TEST(WarmStart, SaysWhyNoResultFromElsewhereIsOfUse) {
  const api::Study study = with_known({R"({"parameters": {"x": 7}, "values": {"loss": 3}})"});
  EXPECT_EQ(message_of(status_after(study, {})),
            "no trial has a usable result: 0 of old.jsonl (1 more lie outside this space)");
}

TEST(WarmStart, StaysWithinItsShareOfTheStatus) {
  api::Study study = beginner();
  EarlierStudy other = earlier({});
  for (int i = 0; i < 100; ++i) {
    api::Parameter more = study.spec.parameters[0];
    more.name = "a_parameter_with_a_long_name_" + std::to_string(i);
    study.spec.parameters.push_back(more);
  }
  for (std::int64_t i = 0; i < 300; ++i) other.trials.push_back(ended(i, 0.5, 1));
  std::size_t bytes = 0;
  for (const auto& one : status_after(study, {other}).prior_observations) {
    bytes += one.parameters.dump().size();
  }
  EXPECT_LE(bytes, kMaxPriorBytes);
  EXPECT_GT(bytes, kMaxPriorBytes / 4);
}

}  // namespace
}  // namespace fettle::core
