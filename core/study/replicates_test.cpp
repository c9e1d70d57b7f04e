// Replicates in Studies that were really planned: the repeated trials, and the agreement of replay.
#include "core/study/replicates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "core/facts/history.h"
#include "core/replay/replay.h"
#include "core/testing/rehearsal.h"

namespace fettle::core {
namespace {

using api::Trial;
using api::TrialPtr;

// Returns a rehearsal of a Study that is over and whose leaders are run again; with noise, so that
// runs differ.
Rehearsal repeating(const std::string& algorithm) {
  Rehearsal out(algorithm == "asha" ? "tpe" : algorithm);
  if (algorithm == "asha") {
    out.study.spec.early_stopping = rule("asha");
    out.study.spec.early_stopping->promote = true;
  }
  if (algorithm == "grid") out.study.spec.algorithm.points = 9;  // fewer than the budget
  out.study.spec.replicates = {.leaders = 3, .runs = 4};
  out.noise = 0.001;
  out.run();
  return out;
}

std::int64_t replicates_in(const Rehearsal& rehearsal) {
  return std::ranges::count_if(rehearsal.trials,
                               [](const TrialPtr& trial) { return is_replicate(*trial); });
}

TEST(Replay, OfReplicatesAgrees) {
  for (const char* algorithm : {"random", "sobol", "grid", "tpe", "gp", "cmaes", "nsga2",
                                "portfolio", "auto", "hyperband", "bohb", "asha"}) {
    SCOPED_TRACE(algorithm);
    Rehearsal rehearsal = repeating(algorithm);
    const std::int64_t repeated = replicates_in(rehearsal);
    EXPECT_GE(repeated, 4);
    EXPECT_EQ(repeated, rehearsal.study.status.trials.replicates);
    EXPECT_EQ(repeated % 4, 0) << "each leader as often";
    EXPECT_EQ(rehearsal.study.status.best.at(0).replicates->runs, 4);
    // The search continues in a history in which points occur several times.
    rehearsal.change_budget([](api::Budget& budget) { budget.trials = 26; });
    rehearsal.run();
    const bool exhausts = std::string(algorithm) == "grid";
    const auto again = replay(rehearsal.study, rehearsal.trials);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->suggestions, exhausts ? 9 : 26);
    EXPECT_EQ(again->replicates, replicates_in(rehearsal));
    for (const Difference& difference : again->differences) {
      ADD_FAILURE() << difference.trial << " (" << difference.basis << ") " << difference.recorded
                    << " / " << difference.decided;
    }
  }
}

TEST(Replay, NamesTheWrongReplicate) {
  const Rehearsal right = repeating("random");
  std::size_t first = 0;
  while (!is_replicate(*right.trials[first])) ++first;
  const std::string leader = right.trials[first]->spec.search.replicates;
  const auto differences_after = [&](auto&& edit, std::size_t index) {
    Rehearsal wrong = right;
    wrong.edit(index, edit);
    const auto again = replay(wrong.study, wrong.trials);
    EXPECT_TRUE(again.ok());
    return again.ok() ? again->differences : std::vector<Difference>();
  };
  const auto other =
      differences_after([](Trial& trial) { trial.spec.search.replicates = "s-0"; }, first);
  ASSERT_FALSE(other.empty());
  EXPECT_EQ(other[0].trial, right.trials[first]->metadata.name);
  EXPECT_EQ(other[0].recorded, "repeats s-0");
  EXPECT_EQ(other[0].decided, "repeats " + leader);
  const auto moved =
      differences_after([](Trial& trial) { trial.spec.parameters.set("x", 0.123); }, first);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].recorded, "repeats " + leader + " with {\"x\":0.123}");
  const auto early = differences_after([](Trial& trial) { trial.spec.search.basis = 10; }, first);
  ASSERT_FALSE(early.empty());
  EXPECT_THAT(early[0].decided,
              testing::MatchesRegex("no trial is repeated before s-.* has ended"));
}

TEST(Replay, DoesNotJudgeTheOrderOfReplicatesAfterADeletedTrial) {
  Rehearsal rehearsal = repeating("random");
  std::size_t first = 0;
  while (!is_replicate(*rehearsal.trials[first])) ++first;
  rehearsal.trials.erase(rehearsal.trials.begin() + static_cast<std::ptrdiff_t>(first));
  EXPECT_TRUE(differences_of(rehearsal).empty());
}

TEST(Plan, RepeatsWithSeedsThatDiffer) {
  const Rehearsal rehearsal = repeating("random");
  std::set<std::int64_t> seeds;
  for (const TrialPtr& trial : rehearsal.trials) seeds.insert(trial->spec.seed);
  EXPECT_EQ(seeds.size(), rehearsal.trials.size());
  for (const TrialPtr& trial : rehearsal.trials) {
    if (!is_replicate(*trial)) continue;
    const TrialPtr leader = find_trial(rehearsal.trials, trial->spec.search.replicates);
    ASSERT_NE(leader, nullptr);
    EXPECT_EQ(trial->spec.parameters, leader->spec.parameters);
    EXPECT_FALSE(is_replicate(*leader));
  }
}

}  // namespace
}  // namespace fettle::core
