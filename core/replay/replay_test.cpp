// Replays Studies that were really planned, and asks what another rule would have made of them.
#include "core/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "api/study/algorithm.h"
#include "core/conditions.h"
#include "core/facts/history.h"
#include "core/replay/lineage.h"
#include "core/replay/what_if.h"
#include "core/study/search_period.h"
#include "core/study/study_plan.h"
#include "core/testing/rehearsal.h"

namespace fettle::core {
namespace {

using api::Trial;
using api::TrialPhase;
using api::TrialPtr;
using testing::HasSubstr;

TEST(Replay, OfTheDecisionsAgrees) {
  for (const char* algorithm : {"random", "sobol", "tpe", "auto"}) {
    for (const char* stopping : {"", "asha", "median"}) {
      Rehearsal rehearsal(algorithm);
      if (*stopping != '\0') rehearsal.study.spec.early_stopping = rule(stopping);
      rehearsal.run();
      const auto again = replay(rehearsal.study, rehearsal.trials);
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(again->suggestions, 20);
      EXPECT_EQ(again->stops > 0, *stopping != '\0') << algorithm << stopping;
      for (const Difference& difference : again->differences) {
        ADD_FAILURE() << algorithm << ' ' << stopping << ": " << difference.trial << ' '
                      << difference.recorded << " / " << difference.decided;
      }
    }
  }
}

// Trials pause at rungs, and promotions go up to the last rung.
Rehearsal promoting(const std::string& algorithm) {
  Rehearsal out(algorithm == "asha" ? "tpe" : algorithm);
  if (algorithm == "asha") {
    out.study.spec.early_stopping = rule("asha");
    out.study.spec.early_stopping->promote = true;
  }
  out.run();
  return out;
}

TEST(Replay, OfPromotionsAgrees) {
  for (const char* algorithm : {"hyperband", "bohb", "asha"}) {
    const Rehearsal rehearsal = promoting(algorithm);
    const auto again = replay(rehearsal.study, rehearsal.trials);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->suggestions, 20);
    EXPECT_EQ(again->judgements, 0);
    std::int64_t promotions = 0;
    for (const TrialPtr& trial : rehearsal.trials) {
      promotions += static_cast<std::int64_t>(trial->spec.search.promotions.size());
    }
    EXPECT_GT(promotions, 2);
    EXPECT_EQ(again->promotions, promotions) << algorithm;
    for (const Difference& difference : again->differences) {
      ADD_FAILURE() << algorithm << ": " << difference.trial << " (" << difference.basis << ") "
                    << difference.recorded << " / " << difference.decided;
    }
  }
}

// A population of six whose trials take turns on three workers; `schedule`: the legs that led to
// the best of it.
Rehearsal taking_over(const std::string& algorithm) {
  Rehearsal out(algorithm == "schedule" ? "pbt" : algorithm);
  out.study.spec.budget.trials = 6;
  out.study.spec.algorithm.interval = 1;
  out.run();
  if (algorithm != "schedule") return out;
  Rehearsal again("schedule");
  const api::BestTrial& best = out.study.status.best.front();
  again.study.spec = replay_of(out.study, lineage_of(out.trials, best.trial, best.step)).spec;
  again.run();
  return again;
}

TEST(Replay, OfPopulationsAgrees) {
  for (const char* algorithm : {"pbt", "pb2", "schedule"}) {
    const Rehearsal rehearsal = taking_over(algorithm);
    const auto again = replay(rehearsal.study, rehearsal.trials);
    ASSERT_TRUE(again.ok());
    std::int64_t replacements = 0;
    std::int64_t promotions = 0;
    for (const TrialPtr& trial : rehearsal.trials) {
      replacements += trial->spec.parent ? 1 : 0;
      promotions += static_cast<std::int64_t>(trial->spec.search.promotions.size());
    }
    const auto trials = static_cast<std::int64_t>(rehearsal.trials.size());
    EXPECT_GT(replacements, 1) << algorithm;
    EXPECT_EQ(again->replacements, replacements) << algorithm;
    EXPECT_EQ(again->promotions, promotions) << algorithm;
    EXPECT_EQ(again->suggestions, trials - replacements) << algorithm;
    for (const Difference& difference : again->differences) {
      ADD_FAILURE() << algorithm << ": " << difference.trial << " (" << difference.basis << ") "
                    << difference.recorded << " / " << difference.decided;
    }
  }
}

// auto with a budget that limits the work: trials pause, or are stopped.
Rehearsal saving_steps(bool resumes) {
  Rehearsal out("auto");
  out.study.spec.algorithm.startup_trials.reset();
  out.study.spec.budget.wall_time = 1e6;
  out.study.spec.budget.trials = 30;
  if (resumes) out.study.spec.trial.checkpoints.emplace();
  out.run();
  return out;
}

TEST(Replay, OfAutosChoiceAboutStepsAgrees) {
  for (const bool resumes : {true, false}) {
    const Rehearsal rehearsal = saving_steps(resumes);
    EXPECT_THAT(rehearsal.study.status.algorithm, HasSubstr(resumes ? "auto: bohb" : "asha stops"));
    const auto again = replay(rehearsal.study, rehearsal.trials);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->suggestions, 30);
    EXPECT_EQ(again->promotions > 2, resumes);
    EXPECT_EQ(again->stops > 2, !resumes);
    for (const Difference& difference : again->differences) {
      ADD_FAILURE() << difference.trial << " (" << difference.basis << ") " << difference.recorded
                    << " / " << difference.decided;
    }
  }
}

// The budget may change while trials run; whether they pause was settled when the Study began.
TEST(Plan, GoesOnWhenABudgetOfTimeComesOrGoes) {
  for (const bool begins_limited : {true, false}) {
    Rehearsal rehearsal("auto");
    rehearsal.study.spec.trial.checkpoints.emplace();
    rehearsal.study.spec.budget.trials = 30;
    if (begins_limited) rehearsal.study.spec.budget.wall_time = 1e6;
    rehearsal.run(/*reconciles=*/9);
    ASSERT_FALSE(is_finished(rehearsal.study.status));
    rehearsal.change_budget([&](api::Budget& budget) {
      budget.wall_time.reset();
      if (!begins_limited) budget.wall_time = 1e6;
    });
    rehearsal.run();
    EXPECT_EQ(rehearsal.trials.size(), 30U);
    EXPECT_FALSE(rehearsal.study.status.best.empty());
    EXPECT_THAT(rehearsal.study.status.algorithm,
                HasSubstr(begins_limited ? "auto: bohb" : "runs to its end"));
    const auto again = replay(rehearsal.study, rehearsal.trials);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->differences.empty());
  }
}

TEST(Replay, OfABudgetThatWasRaisedAgrees) {
  Rehearsal rehearsal("auto");
  rehearsal.study.spec.algorithm.startup_trials.reset();
  rehearsal.study.spec.budget.trials = 4;
  rehearsal.run();
  EXPECT_THAT(rehearsal.study.status.algorithm, HasSubstr("auto: sobol"));
  rehearsal.change_budget([](api::Budget& budget) { budget.trials = 14; });
  rehearsal.run();
  // From here on there are results to learn from, and an event says so.
  ASSERT_EQ(rehearsal.study.status.search.size(), 2U);
  EXPECT_EQ(rehearsal.study.status.search[1].since, 4);
  EXPECT_EQ(rehearsal.study.status.search[1].algorithm, "portfolio");
  EXPECT_THAT(rehearsal.notes,
              testing::Contains(HasSubstr("SearchChanged: from trial 4 on auto is portfolio, no "
                                          "longer sobol, because it needs")));
  EXPECT_TRUE(differences_of(rehearsal).empty());
  // Nothing is left to run, and the choice of the existing trials stays as it was.
  rehearsal.change_budget([](api::Budget& budget) { budget.parallelism = 14; });
  rehearsal.run();
  EXPECT_EQ(rehearsal.study.status.search.size(), 2U);
  EXPECT_TRUE(differences_of(rehearsal).empty());
  // A search that learns is not given up for a search that does not.
  rehearsal.change_budget([](api::Budget& budget) { budget.trials = 16; });
  rehearsal.run();
  EXPECT_EQ(rehearsal.study.status.search.back().algorithm, "portfolio");
  EXPECT_TRUE(differences_of(rehearsal).empty());
}

TEST(Replay, OfABudgetOfTimeWithMoreTrialsAgrees) {
  Rehearsal rehearsal("auto");
  rehearsal.study.spec.algorithm.startup_trials.reset();
  rehearsal.study.spec.trial.checkpoints.emplace();
  rehearsal.study.spec.budget.wall_time = 1e6;
  rehearsal.study.spec.budget.trials = 25;  // few enough to run to their end
  rehearsal.run();
  rehearsal.change_budget([](api::Budget& budget) { budget.trials = 30; });
  rehearsal.run();
  EXPECT_EQ(rehearsal.trials.size(), 30U);
  EXPECT_THAT(rehearsal.study.status.algorithm, HasSubstr("runs to its end"));
  EXPECT_TRUE(differences_of(rehearsal).empty());
}

TEST(Replay, OfAPopulationThatGrewAgrees) {
  Rehearsal rehearsal = taking_over("pbt");
  const std::size_t before = rehearsal.trials.size();
  rehearsal.change_budget([](api::Budget& budget) { budget.trials = 8; });
  rehearsal.run();
  EXPECT_GT(rehearsal.trials.size(), before);
  const auto differences = differences_of(rehearsal);
  EXPECT_TRUE(differences.empty())
      << differences[0].trial << ' ' << differences[0].recorded << " / " << differences[0].decided;
}

TEST(Replay, ToleratesRoundingOfAnotherMachine) {
  struct Case {
    const char* machine;  // that computed the choices
    double shift;         // relative change of a number
    std::int64_t close;
    std::size_t differences;
  };
  for (const auto& [machine, shift, close, differences] :
       {Case{"here", 0, 0, 0}, Case{"here", 1e-11, 0, 1}, Case{"elsewhere", 0, 0, 0},
        Case{"elsewhere", 1e-11, 1, 0}, Case{"elsewhere", 1e-3, 0, 1}}) {
    Rehearsal rehearsal("random");  // ignores results: one number differs alone
    rehearsal.machine = machine;
    rehearsal.run();
    rehearsal.edit(12, [&](Trial& trial) {
      const double x = trial.spec.parameters.find("x")->as_double();
      trial.spec.parameters.set("x", x * (1 + shift));
    });
    const auto again = replay(rehearsal.study, rehearsal.trials, "here");
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->close, close) << machine << shift;
    EXPECT_EQ(again->differences.size(), differences) << machine << shift;
    const std::vector<std::string> elsewhere = {"elsewhere"};
    EXPECT_EQ(again->elsewhere == elsewhere, std::string(machine) == "elsewhere");
  }
}

std::size_t first_promoted(const Rehearsal& rehearsal) {
  std::size_t out = 0;
  while (rehearsal.trials[out]->spec.search.promotions.empty()) ++out;
  return out;
}

TEST(Replay, NamesAPromotionThatFactsDoNotBearOut) {
  Rehearsal rehearsal = promoting("hyperband");
  const std::size_t promoted = first_promoted(rehearsal);
  rehearsal.edit(promoted, [](Trial& trial) {
    for (api::Fact& fact : trial.status.facts) fact.values = {1e9};
  });
  const auto differences = differences_of(rehearsal);
  ASSERT_FALSE(differences.empty());
  EXPECT_THAT(differences[0].recorded, HasSubstr("continues to epoch"));
}

TEST(Replay, NamesAPromotionThatIsMissing) {
  Rehearsal rehearsal = promoting("hyperband");
  rehearsal.edit(first_promoted(rehearsal),
                 [](Trial& trial) { trial.spec.search.promotions.clear(); });
  const auto differences = differences_of(rehearsal);
  ASSERT_FALSE(differences.empty());
  EXPECT_THAT(differences[0].decided, HasSubstr("continues to epoch"));
}

TEST(Replay, NamesATrialThatBeganElsewhere) {
  Rehearsal rehearsal = promoting("hyperband");
  rehearsal.edit(0, [](Trial& trial) { trial.spec.search.bracket = 2; });
  const auto differences = differences_of(rehearsal);
  ASSERT_FALSE(differences.empty());
  EXPECT_EQ(differences[0].recorded, "begins at rung 2");
}

// The first members begin with the points to try first and the best of an earlier Study.
TEST(Replay, OfAPopulationThatStartsWarmAgrees) {
  for (const char* algorithm : {"pbt", "pb2"}) {
    Rehearsal rehearsal(algorithm);
    rehearsal.study.spec.budget.trials = 6;
    rehearsal.study.spec.algorithm.interval = 1;
    rehearsal.study.spec.warm_start.emplace().points = {Json::object({{"x", 0.25}})};
    rehearsal.study.status.prior_observations = {{"old-3", Json::object({{"x", 0.75}}), {0.2}}};
    rehearsal.run();
    EXPECT_EQ(rehearsal.trials[0]->spec.parameters, Json::object({{"x", 0.25}}));
    EXPECT_EQ(rehearsal.trials[1]->spec.parameters, Json::object({{"x", 0.75}}));
    EXPECT_EQ(std::ranges::count_if(rehearsal.trials,
                                    [](const TrialPtr& trial) { return !trial->spec.parent; }),
              6);
    EXPECT_THAT(rehearsal.study.status.algorithm, HasSubstr("points to try first"));
    const auto differences = differences_of(rehearsal);
    EXPECT_TRUE(differences.empty()) << differences[0].trial << ' ' << differences[0].decided;
  }
}

std::size_t first_that_took_over(const Rehearsal& rehearsal) {
  std::size_t out = 0;
  while (!rehearsal.trials[out]->spec.parent) ++out;
  return out;
}

TEST(Replay, NamesWrongParametersOfAReplacement) {
  for (const char* algorithm : {"pbt", "pb2", "schedule"}) {
    Rehearsal rehearsal = taking_over(algorithm);
    const std::size_t later = first_that_took_over(rehearsal);
    rehearsal.edit(later, [](Trial& trial) { trial.spec.parameters.set("x", 0.123); });
    const auto differences = differences_of(rehearsal);
    ASSERT_FALSE(differences.empty()) << algorithm;
    EXPECT_EQ(differences[0].trial, rehearsal.trials[later]->metadata.name);
    EXPECT_THAT(differences[0].recorded, HasSubstr("in the place of s-"));
    EXPECT_THAT(differences[0].recorded, HasSubstr("0.123"));
  }
}

TEST(Replay, NamesAReplacementThatFactsDoNotBearOut) {
  Rehearsal rehearsal = taking_over("pbt");
  const Trial& later = *rehearsal.trials[first_that_took_over(rehearsal)];
  std::size_t parent = 0;
  while (rehearsal.trials[parent]->metadata.name != later.spec.parent->trial) ++parent;
  rehearsal.edit(parent, [](Trial& trial) {
    for (api::Fact& fact : trial.status.facts) fact.values = {1e9};
  });
  EXPECT_FALSE(differences_of(rehearsal).empty());
}

TEST(Replay, NamesAnUnrecordedPromotionOfAMember) {
  Rehearsal rehearsal = taking_over("pbt");
  rehearsal.edit(first_promoted(rehearsal),
                 [](Trial& trial) { trial.spec.search.promotions.clear(); });
  const auto differences = differences_of(rehearsal);
  ASSERT_FALSE(differences.empty());
  EXPECT_THAT(differences[0].decided, HasSubstr("continues to epoch"));
}

TEST(Replay, NamesAPointThatWasChanged) {
  Rehearsal rehearsal("tpe");
  rehearsal.run();
  rehearsal.edit(12, [](Trial& trial) { trial.spec.parameters.set("x", 0.123); });
  const auto again = replay(rehearsal.study, rehearsal.trials);
  ASSERT_TRUE(again.ok());
  ASSERT_FALSE(again->differences.empty());
  EXPECT_EQ(again->differences[0].trial, "s-12");
  EXPECT_THAT(again->differences[0].recorded, HasSubstr("0.123"));
}

TEST(Replay, NamesAValueThatWasChanged) {
  Rehearsal rehearsal("random");
  rehearsal.study.spec.early_stopping = rule("asha");
  rehearsal.run();
  std::size_t stopped = 0;
  while (!rehearsal.trials[stopped]->spec.stop) ++stopped;
  rehearsal.edit(stopped, [](Trial& trial) {
    for (api::Fact& fact : trial.status.facts) fact.values = {-1.0};
  });
  const auto again = replay(rehearsal.study, rehearsal.trials);
  ASSERT_TRUE(again.ok());
  const std::string name = rehearsal.trials[stopped]->metadata.name;
  const auto found = std::ranges::find(again->differences, name, &Difference::trial);
  ASSERT_NE(found, again->differences.end());
  EXPECT_THAT(found->recorded, HasSubstr("stop: asha"));
  EXPECT_THAT(found->decided, HasSubstr("continue: "));
}

TEST(Replay, FindsAStopThatIsMissing) {
  Rehearsal rehearsal("random");
  rehearsal.run();
  rehearsal.study.spec.early_stopping = rule("asha");
  rehearsal.edit(5, [](Trial& trial) {
    trial.status.facts.insert(trial.status.facts.begin(),
                              {.seq = 1000, .step = 1, .values = {}, .at_ms = 1});
    trial.status.facts.front().kind = api::FactKind::kRung;
    trial.status.facts.front().values = {std::nullopt};
  });
  const auto again = replay(rehearsal.study, rehearsal.trials);
  ASSERT_TRUE(again.ok());
  ASSERT_EQ(again->judgements, 1);
  ASSERT_EQ(again->differences.size(), 1U);
  EXPECT_EQ(again->differences[0].recorded, "continue");
}

TEST(Replay, CountsTrialsThatWereDeleted) {
  Rehearsal rehearsal("random");
  rehearsal.run();
  rehearsal.trials.erase(rehearsal.trials.begin() + 7);
  const auto again = replay(rehearsal.study, rehearsal.trials);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->deleted, 1);
  EXPECT_TRUE(again->differences.empty());  // random ignores results
}

TEST(Replay, ExplainsAnInvalidAlgorithm) {
  Rehearsal rehearsal("random");
  rehearsal.run();
  rehearsal.study.spec.algorithm.name = api::AlgorithmKind::kTpe;
  rehearsal.study.spec.algorithm.candidates = 0;
  EXPECT_FALSE(replay(rehearsal.study, rehearsal.trials).ok());
}

TEST(History, BeforeATrialHasOnlyEarlierFacts) {
  Rehearsal rehearsal("random");
  rehearsal.run();
  for (const TrialPtr& trial : rehearsal.trials) {
    const search::History history =
        history_before(rehearsal.study, rehearsal.trials, trial->spec.index);
    EXPECT_EQ(static_cast<std::int64_t>(history.trials.size()), trial->spec.index);
    EXPECT_EQ(static_cast<std::int64_t>(history.events.size()), trial->spec.search.basis);
  }
}

TEST(WhatIf, TheSameRuleStopsTheSameTrials) {
  Rehearsal rehearsal("random");
  rehearsal.study.spec.early_stopping = rule("asha");
  rehearsal.run();
  const WhatIf other = simulate_stopping(rehearsal.study, rule("asha"), rehearsal.trials);
  std::size_t stopped = 0;
  for (const TrialPtr& trial : rehearsal.trials) stopped += trial->spec.stop ? 1 : 0;
  EXPECT_EQ(other.stops.size(), stopped);
  EXPECT_EQ(other.unknown, 0);
}

TEST(WhatIf, ShowsTheSavingOfARule) {
  Rehearsal rehearsal("random");
  rehearsal.run();
  const WhatIf other = simulate_stopping(rehearsal.study, rule("asha"), rehearsal.trials);
  EXPECT_EQ(other.steps, 20 * 9);
  ASSERT_FALSE(other.stops.empty());
  std::int64_t saved = 0;
  for (const WhatIfStop& stop : other.stops) {
    EXPECT_LT(stop.step, 9);
    EXPECT_EQ(stop.reached, 9);
    EXPECT_THAT(stop.reason, HasSubstr("asha: rung"));
    saved += stop.reached - stop.step;
  }
  EXPECT_EQ(other.saved, saved);
  EXPECT_EQ(other.best, other.best_left);  // it is the best at every rung
}

TEST(WhatIf, DoesNotInventTheEndOfAStoppedTrial) {
  Rehearsal rehearsal("random");
  rehearsal.study.spec.early_stopping = rule("asha");
  rehearsal.run();
  api::EarlyStopping patient = rule("median");
  patient.min_trials = 1000;
  const WhatIf other = simulate_stopping(rehearsal.study, patient, rehearsal.trials);
  EXPECT_TRUE(other.stops.empty());
  EXPECT_EQ(other.saved, 0);
  EXPECT_GT(other.unknown, 0);
}

}  // namespace
}  // namespace fettle::core
