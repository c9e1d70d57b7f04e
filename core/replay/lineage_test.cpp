// The legs that led to a trial, and the Study that trains them again.
#include "core/replay/lineage.h"

#include <gtest/gtest.h>

#include <memory>

#include "api/study/study_json.h"
#include "core/names.h"

namespace fettle::core {
namespace {

api::TrialPtr trial(std::int64_t index, double x, std::optional<api::Parent> parent,
                    const std::vector<std::pair<std::int64_t, double>>& values) {
  api::Trial out;
  out.metadata.name = trial_name("digits", index);
  out.spec.index = index;
  out.spec.seed = 100 + index;
  out.spec.parameters = Json::object({{"x", x}});
  out.spec.parent = std::move(parent);
  for (const auto& [step, value] : values) {
    out.status.facts.push_back({.kind = api::FactKind::kRung, .step = step, .values = {value}});
  }
  return std::make_shared<const api::Trial>(std::move(out));
}

// 0 was replaced at step 2 by 2, a copy of 1; and 2 at step 4 by 3, a copy of itself.
std::vector<api::TrialPtr> family() {
  return {trial(0, 0.1, {}, {{2, 0.1}}), trial(1, 0.2, {}, {{2, 0.5}, {4, 0.6}}),
          trial(2, 0.3, api::Parent{"digits-1", 2}, {{4, 0.7}}),
          trial(3, 0.4, api::Parent{"digits-2", 4}, {{9, 0.9}})};
}

std::string words(const std::vector<Leg>& legs) {
  std::string out;
  for (const Leg& leg : legs) {
    out += leg.trial->metadata.name + " from " + std::to_string(leg.from_step) + " to " +
           std::to_string(leg.until_step) + ": " + Json(leg.values.at(0).value()).dump() + "; ";
  }
  return out;
}

TEST(Lineage, GoesFromParentToChild) {
  EXPECT_EQ(words(lineage_of(family(), "digits-3", 9)),
            "digits-1 from 0 to 2: 0.5; digits-2 from 2 to 4: 0.7; digits-3 from 4 to 9: 0.9; ");
  EXPECT_EQ(words(lineage_of(family(), "digits-1", 4)), "digits-1 from 0 to 4: 0.6; ");
  EXPECT_TRUE(lineage_of(family(), "digits-7", 4).empty());
}

TEST(Lineage, BeginsLaterWhereAParentWasDeleted) {
  const std::vector<api::TrialPtr> all = family();
  const std::vector<api::TrialPtr> rest = {all[2], all[3]};
  EXPECT_EQ(lineage_of(rest, "digits-3", 9).front().from_step, 2);
}

TEST(Replay, IsAStudyThatCanBeRead) {
  api::Study study;
  study.metadata.name = "a-name-of-a-study-that-is-as-long-as-can";
  study.spec.objectives = {{"accuracy", api::Direction::kMaximize, 0.5, api::Take::kLast}};
  study.spec.resource = {"epoch", 1, 9};
  study.spec.algorithm.name = api::AlgorithmKind::kPbt;
  study.spec.budget.trials = 4;
  study.spec.replicates = api::Replicates{.leaders = 3, .runs = 5};  // which a schedule refuses
  api::Parameter x;
  x.name = "x";
  x.max = 1;
  study.spec.parameters = {x};
  study.spec.trial.pod_template =
      parse_json(R"({"spec": {"containers": [{"name": "t", "command": ["./train"]}]}})").value();
  const api::Study again = replay_of(study, lineage_of(family(), "digits-3", 9));
  const api::ReadStudy read = api::read_study(api::write_study(again));
  EXPECT_EQ(api::to_string(read.errors), "");
  EXPECT_EQ(read.study.metadata.name, "a-name-of-a-study-that-is-as-long-again");
  ASSERT_EQ(read.study.spec.algorithm.legs.size(), 3U);
  EXPECT_EQ(read.study.spec.algorithm.legs[1].parameters.dump(), R"({"x":0.3})");
  EXPECT_EQ(read.study.spec.algorithm.legs[1].until_step, 4);
  EXPECT_EQ(read.study.spec.algorithm.legs[1].seed, 102);
  EXPECT_FALSE(read.study.spec.objectives[0].goal) << "a replay goes to the end";
}

}  // namespace
}  // namespace fettle::core
