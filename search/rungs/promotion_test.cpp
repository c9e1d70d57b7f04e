// Rungs, brackets and promotions, by hand-worked tables.
#include "search/rungs/promotion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "search/rungs/halving.h"
#include "search/rungs/rung_model.h"
#include "search/rungs/rung_table.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::ElementsAre;

Problem problem_on(std::string algorithm, std::int64_t min, std::int64_t max) {
  Problem out = problem_of({real("x", 0, 1)}, std::move(algorithm));
  out.resource = {"epoch", min, max};
  return out;
}

Problem asha_on(std::int64_t min, std::int64_t max) {
  Problem out = problem_on("random", min, max);
  out.early_stopping.emplace();
  out.early_stopping->name = api::StoppingKind::kAsha;
  out.early_stopping->promote = true;
  return out;
}

// A history to which trials report, as a runner would.
class Story {
 public:
  explicit Story(Problem problem) : problem_(std::move(problem)), steps_(ladder_of(problem_)) {}

  // Adds a trial with its losses at the rungs it comes to before it pauses.
  std::int64_t begins(std::size_t bracket, const std::vector<double>& losses) {
    const auto trial = static_cast<std::int64_t>(history.trials.size());
    const auto rung = static_cast<std::int64_t>(bracket);
    history.trials.push_back(Json::object());
    history.stages.push_back({.bracket = rung, .rung = rung, .until_step = steps_[bracket]});
    for (std::size_t i = 0; i < losses.size(); ++i) comes_to(trial, i, losses[i]);
    return trial;
  }
  void comes_to(std::int64_t trial, std::size_t rung, double loss) {
    const bool last = rung + 1 == steps_.size();
    const auto kind = last ? api::FactKind::kResult : api::FactKind::kRung;
    history.events.push_back(fact(trial, kind, steps_[rung], loss));
    const Stage& stage = history.stages[static_cast<std::size_t>(trial)];
    if (!last && static_cast<std::size_t>(stage.rung) == rung) {
      history.events.push_back(fact(trial, api::FactKind::kStopped, steps_[rung], loss));
    }
  }
  // Its leg ends without a value.
  void says_nothing(std::int64_t trial) {
    const Stage& stage = history.stages[static_cast<std::size_t>(trial)];
    Event event = fact(trial, api::FactKind::kStopped, stage.until_step, 0);
    event.fact.values = {std::nullopt};
    history.events.push_back(event);
  }
  // Carries out the next promotion. Returns its trial; -1 without a promotion.
  std::int64_t promotes(bool last = false) {
    const auto promotion = next_promotion(problem_, history, last);
    if (!promotion) return -1;
    history.stages[static_cast<std::size_t>(promotion->trial)] = promotion->stage;
    return promotion->trial;
  }
  const Problem& problem() const { return problem_; }

  History history;

 private:
  Problem problem_;
  std::vector<std::int64_t> steps_;
};

TEST(Rungs, DescendFromTheLastStep) {
  EXPECT_THAT(rung_ladder({"epoch", 1, 81}, 3), ElementsAre(1, 3, 9, 27, 81));
  EXPECT_THAT(rung_ladder({"epoch", 1, 30}, 3), ElementsAre(1, 3, 10, 30));
  EXPECT_THAT(rung_ladder({"epoch", 2, 81}, 3), ElementsAre(3, 9, 27, 81));
  EXPECT_THAT(rung_ladder({"epoch", 1, 100}, 4), ElementsAre(2, 6, 25, 100));
  EXPECT_THAT(rung_ladder({"epoch", 5, 9}, 3), ElementsAre(9));
  EXPECT_THAT(rung_ladder({"epoch", 1, 8}, 1.5), ElementsAre(1, 2, 4, 5, 8));
  EXPECT_LE(rung_ladder({"epoch", 1, 1'000'000'000}, 1.0000001).size(), 100U);
}

TEST(Rungs, AreTheStepsOfFacts) {
  EXPECT_THAT(rung_steps(problem_on("bohb", 1, 30).algorithm, std::nullopt, {"epoch", 1, 30}),
              ElementsAre(1, 3, 10));
  const Problem asha = asha_on(1, 81);
  EXPECT_THAT(rung_steps(asha.algorithm, asha.early_stopping, asha.resource),
              ElementsAre(1, 3, 9, 27));
  EXPECT_TRUE(promotes(asha));
  EXPECT_FALSE(promotes(problem_on("tpe", 1, 81)));
  EXPECT_FALSE(promotes(problem_on("bohb", 9, 9)));
}

// Li et al. 2018, Table 1: R = 81, eta = 3; by column s = 4 ... 0 the pairs n_i, r_i. In the table
// (and in the authors' own program) (s_max + 1) / (s + 1) is rounded down before it multiplies
// eta^s; by the letter of the paper's Algorithm 1, which rounds the product up, as BOHB and Ray do,
// the brackets would begin with 81, 34, 15, 8 and 5.
TEST(Hyperband, TheTableOfThePaper) {
  using Column = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const std::vector<Column> table = {{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}},
                                     {{27, 3}, {9, 9}, {3, 27}, {1, 81}},
                                     {{9, 9}, {3, 27}, {1, 81}},
                                     {{6, 27}, {2, 81}},
                                     {{5, 81}}};
  const std::vector<std::int64_t> steps = rung_ladder({"epoch", 1, 81}, 3);
  for (std::size_t bracket = 0; bracket < table.size(); ++bracket) {
    Column column;
    std::int64_t left = bracket_size(static_cast<std::int64_t>(bracket), 5, 3);
    for (std::size_t rung = bracket; rung < steps.size(); ++rung, left /= 3) {
      column.emplace_back(left, steps[rung]);
    }
    EXPECT_EQ(column, table[bracket]);
  }
}

TEST(Hyperband, TrialsBeginInTheProportionsOfTheTable) {
  const Problem problem = problem_on("hyperband", 1, 81);
  std::vector<int> counts(5, 0);
  for (const Stage& stage : first_stages(problem, {}, 128)) {
    ++counts[static_cast<std::size_t>(stage.bracket)];
    EXPECT_EQ(stage.until_step, std::lround(std::pow(3, stage.bracket)));
    EXPECT_EQ(stage.rung, stage.bracket);
  }
  EXPECT_THAT(counts, ElementsAre(81, 27, 9, 6, 5));
}

TEST(Brackets, ManyAtOnceAreTheSameAsOneByOne) {
  for (const char* name : {"hyperband", "bohb"}) {
    const Problem problem = problem_on(name, 1, 30);
    History history;
    for (const Stage& stage : first_stages(problem, {}, 40)) {
      EXPECT_EQ(first_stages(problem, history, 1).at(0), stage);
      history.trials.push_back(Json::object());
      history.stages.push_back(stage);
    }
  }
}

TEST(Promotion, TheBestThirdOfARungGoesOn) {
  Story story(asha_on(1, 9));
  story.begins(0, {0.5});
  story.begins(0, {0.4});
  EXPECT_EQ(story.promotes(), -1);  // one in three of two
  story.begins(0, {0.6});
  EXPECT_EQ(story.promotes(), 1);
  EXPECT_EQ(story.promotes(), -1);  // it runs, and no other trial is among the best third
  story.begins(0, {0.3});
  EXPECT_EQ(story.promotes(), 3);  // it took the place of trial 1, which was promoted
  story.comes_to(1, 1, 0.35);
  story.comes_to(3, 1, 0.2);
  EXPECT_EQ(story.promotes(), -1);
  story.begins(0, {0.7});
  story.begins(0, {0.1});
  EXPECT_EQ(story.promotes(), 5);  // best two of six
  story.comes_to(5, 1, 0.25);
  EXPECT_EQ(story.promotes(), 3);  // the higher rung: best one of three there
  EXPECT_EQ(story.history.stages[3].until_step, 9);
}

TEST(Promotion, TheReasonShowsTheComparison) {
  Story story(asha_on(1, 9));
  for (const double loss : {0.5, 0.4, 0.6}) story.begins(0, {loss});
  EXPECT_EQ(next_promotion(story.problem(), story.history, false)->reason,
            "rung 0 (step 1): it is number 1 of 3");
}

TEST(Promotion, MaximisedObjectivesAreTurnedAround) {
  Problem problem = asha_on(1, 9);
  problem.objectives[0].direction = api::Direction::kMaximize;
  Story story(problem);
  for (const double value : {0.5, 0.4, 0.6}) story.begins(0, {value});
  EXPECT_EQ(story.promotes(), 2);
}

TEST(Promotion, InfeasibleFailedAndStoppedTrialsStayBehind) {
  Story story(asha_on(1, 9));
  for (int i = 0; i < 9; ++i) story.begins(0, {0.1 * i});
  story.history.events.push_back(fact(0, api::FactKind::kFailed, 1, std::nullopt));
  story.history.stages[1].ended = true;
  story.history.events.push_back(fact(2, api::FactKind::kRung, 1, std::nullopt));
  EXPECT_EQ(story.promotes(), 3);  // the best three are 0, 1 and 3
  EXPECT_EQ(story.promotes(), -1);
}

TEST(Promotion, ATrialOfAHigherBracketIsRankedWhereItPassesBy) {
  Story story(problem_on("hyperband", 1, 9));
  story.begins(1, {0.1, 0.5});
  story.begins(0, {0.2});
  story.begins(0, {0.3});
  EXPECT_EQ(story.promotes(), -1);  // the best of three is trial 0, and it is further already
}

TEST(Promotion, TheLastCallSendsTheBestToTheEnd) {
  Story story(asha_on(1, 9));
  story.begins(0, {0.5});
  const std::int64_t running = story.begins(0, {});
  EXPECT_EQ(story.promotes(/*last=*/true), -1);  // one still runs, and might be better
  story.comes_to(running, 0, 0.4);
  EXPECT_EQ(story.promotes(/*last=*/true), running);
  EXPECT_EQ(story.promotes(/*last=*/true), -1);
  story.comes_to(running, 1, 0.4);
  EXPECT_EQ(story.promotes(/*last=*/true), running);
  story.comes_to(running, 2, 0.4);
  EXPECT_EQ(story.promotes(/*last=*/true), -1);
  EXPECT_FALSE(any_runs(story.problem(), story.history));
}

TEST(Promotion, WhereTheBestHasFailedTheNextBestGoesToTheEnd) {
  Story story(asha_on(1, 9));
  const std::int64_t best = story.begins(0, {0.1});
  const std::int64_t next = story.begins(0, {0.2});
  story.begins(0, {0.3});
  EXPECT_EQ(story.promotes(/*last=*/true), best);
  story.history.events.push_back(fact(best, api::FactKind::kFailed, 2, std::nullopt));
  EXPECT_EQ(story.promotes(/*last=*/true), next);
  story.comes_to(next, 1, 0.2);
  EXPECT_EQ(story.promotes(/*last=*/true), next);
  story.comes_to(next, 2, 0.2);
  EXPECT_EQ(story.promotes(/*last=*/true), -1) << "one at the end is enough";
}

// The trial left before its rung, with a value or without.
TEST(Promotion, ATrialThatEndedItsLegIsNotAtWorkHoweverFarItCame) {
  Story story(asha_on(3, 9));
  const std::int64_t early = story.begins(0, {});
  const std::int64_t silent = story.begins(0, {});
  EXPECT_TRUE(any_runs(story.problem(), story.history));
  story.history.events.push_back(fact(early, api::FactKind::kRung, 3, 0.5));
  story.history.events.push_back(fact(early, api::FactKind::kStopped, 2, 0.5));
  story.history.events.push_back(fact(silent, api::FactKind::kStopped, 0, std::nullopt));
  EXPECT_FALSE(any_runs(story.problem(), story.history));
  EXPECT_EQ(story.promotes(/*last=*/true), early);
  EXPECT_TRUE(any_runs(story.problem(), story.history)) << "its second leg has begun";
}

TEST(Promotion, TrialsWithinAllConstraintsComeFirst) {
  Story story(asha_on(1, 9));
  story.begins(0, {0.1});
  story.history.events[0].fact.infeasible = true;
  const std::int64_t within = story.begins(0, {0.5});
  story.begins(0, {0.6});
  EXPECT_EQ(story.promotes(), within);
}

// Whether trial 1 is promoted to the last rung after trial 0, which has the same loss at the
// second.
bool promotes_second(std::int64_t revision, double second_at_start) {
  Problem problem = asha_on(1, 9);
  problem.revision = revision;
  Story story(problem);
  story.begins(1, {1.0, 0.5});
  story.begins(1, {second_at_start, 0.5});
  for (int i = 0; i < 4; ++i) story.begins(1, {2.0 + i, 20.0 + i});
  EXPECT_EQ(story.promotes(), 0);
  return story.promotes() == 1;
}

TEST(Promotion, TheTwinOfAPromotedTrialStays) {
  EXPECT_FALSE(promotes_second(kNewestRevision, 1.0));
  EXPECT_TRUE(promotes_second(kNewestRevision, 1.5)) << "different below: no twin";
  EXPECT_TRUE(promotes_second(kFirstRevision, 1.0));
}

// Whether the last of five trials that are equal at the lowest rung is promoted, after the other
// four had these values at the next rung.
bool promotes_fifth(std::int64_t revision, const std::vector<double>& second) {
  Problem problem = asha_on(1, 9);
  problem.revision = revision;
  Story story(problem);
  for (const double loss : second) story.begins(1, {1.0, loss});
  story.begins(0, {1.0});
  for (int i = 0; i < 12; ++i) story.begins(0, {2.0 + i});
  story.history.stages[0].rung = 2;  // the best of the second rung is on its way
  return story.promotes() == 4;
}

TEST(Promotion, ATieAtTheLowestRungStaysWhereTiesRepeat) {
  EXPECT_FALSE(promotes_fifth(kNewestRevision, {0.5, 0.5, 0.5, 0.5}));
  EXPECT_TRUE(promotes_fifth(kNewestRevision, {0.5, 0.6, 0.7, 0.8})) << "equal by chance";
  EXPECT_TRUE(promotes_fifth(kNewestRevision, {0.5, 0.5, 0.5, 0.7})) << "too few to tell";
  EXPECT_TRUE(promotes_fifth(kFirstRevision, {0.5, 0.5, 0.5, 0.5}));
}

TEST(Promotion, ATrialThatRanToTheEndUnaskedIsNotPromoted) {
  Story story(asha_on(1, 9));
  story.begins(0, {0.1, 0.1, 0.1});
  story.begins(0, {0.2});
  story.begins(0, {0.3});
  EXPECT_EQ(story.promotes(), -1);
}

TEST(Probe, OneSilentTrialIsSentOnWhileNoneHasReported) {
  Story story(asha_on(1, 9));
  for (int i = 0; i < 3; ++i) story.says_nothing(story.begins(0, {}));
  EXPECT_EQ(story.promotes(), 0);
  EXPECT_TRUE(is_probing(story.problem(), story.history));
  EXPECT_EQ(story.promotes(), -1) << "one probe at a time";
}

TEST(Probe, ItGoesOnUntilItReports) {
  Story story(asha_on(1, 9));
  for (int i = 0; i < 2; ++i) story.says_nothing(story.begins(0, {}));
  EXPECT_EQ(story.promotes(), 0);
  story.says_nothing(0);
  EXPECT_EQ(story.promotes(), 0);
  EXPECT_EQ(story.history.stages[0].until_step, 9);
  story.comes_to(0, 2, 0.5);
  EXPECT_FALSE(is_probing(story.problem(), story.history));
}

TEST(Probe, ItsFirstReportIsTheFirstRungOfTheOthers) {
  Story story(asha_on(1, 9));
  for (int i = 0; i < 3; ++i) story.says_nothing(story.begins(0, {}));
  EXPECT_EQ(story.promotes(), 0);
  story.history.events.push_back(fact(0, api::FactKind::kRung, 1, 0.5));  // as the next one
  story.comes_to(0, 1, 0.5);
  EXPECT_EQ(story.promotes(), 1);
  EXPECT_EQ(story.promotes(), 2);
  EXPECT_EQ(story.history.stages[2].until_step, 3);
  EXPECT_FALSE(is_probing(story.problem(), story.history));
  for (const Stage& stage : first_stages(story.problem(), story.history, 4)) {
    EXPECT_EQ(stage.bracket, 1);
    EXPECT_EQ(stage.until_step, 3);
  }
  story.comes_to(1, 1, 0.4);
  EXPECT_EQ(story.promotes(), -1);
  story.comes_to(2, 1, 0.6);
  EXPECT_EQ(story.promotes(), 1) << "the best third of the three at rung 1";
}

TEST(Probe, ATrialOfAHigherBracketDoesNotTellWhereReportsBegin) {
  Story story(problem_on("hyperband", 1, 9));
  story.begins(1, {0.5, 0.5});  // at the first rung it has the value of its first report
  for (int i = 0; i < 2; ++i) story.says_nothing(story.begins(0, {}));
  EXPECT_EQ(story.promotes(), 1);
  story.history.events.push_back(fact(1, api::FactKind::kRung, 1, 0.4));
  story.comes_to(1, 1, 0.4);
  EXPECT_EQ(story.promotes(), 2) << "to the rung at which the first one reported";
  for (const Stage& stage : first_stages(story.problem(), story.history, 9)) {
    EXPECT_GE(stage.bracket, 1);
  }
}

TEST(Probe, AFailedProbeIsTheLast) {
  Story story(asha_on(1, 9));
  for (int i = 0; i < 2; ++i) story.says_nothing(story.begins(0, {}));
  EXPECT_EQ(story.promotes(), 0);
  story.history.events.push_back(fact(0, api::FactKind::kFailed, 3, std::nullopt));
  EXPECT_EQ(story.promotes(), -1);
  EXPECT_FALSE(is_probing(story.problem(), story.history)) << "new trials wait for nothing";
  EXPECT_THAT(silent_for_good(story.problem(), story.history), ElementsAre(1));
}

TEST(Probe, NoProbeIsSentIfOthersReportAtTheFirstRung) {
  Story story(asha_on(1, 9));
  story.begins(0, {0.5});
  story.says_nothing(story.begins(0, {}));
  EXPECT_EQ(story.promotes(), -1);
  EXPECT_FALSE(is_probing(story.problem(), story.history));
}

// Trust: from pairs of rungs 0 and 1.
Story pairs(const std::vector<std::pair<double, double>>& losses) {
  Story out(problem_on("bohb", 1, 9));
  for (const auto& [low, high] : losses) out.begins(1, {low, high});
  return out;
}
double trust_in(const Story& story) {
  return RungTable(story.problem(), story.history, {1, 3, 9}).agreement(0, 1, 0.9);
}

TEST(Trust, RisesWithAgreementAndFallsWithoutIt) {
  std::vector<std::pair<double, double>> agree;
  std::vector<std::pair<double, double>> disagree;
  std::vector<std::pair<double, double>> unrelated;
  for (int i = 0; i < 40; ++i) {
    agree.emplace_back(i, 3 * i);
    disagree.emplace_back(i, -i);
    unrelated.emplace_back(i, (i * 17) % 40);
  }
  EXPECT_DOUBLE_EQ(trust_in(pairs({})), 0.9);
  EXPECT_GT(trust_in(pairs(agree)), 0.95);
  EXPECT_LT(trust_in(pairs(disagree)), 0.1);
  EXPECT_LT(trust_in(pairs(unrelated)), 0.45);
}

TEST(Trust, IsCorrectedForTheSelectionOfPairs) {
  Random random(3);
  Story all(problem_on("bohb", 1, 9));
  Story selected(problem_on("bohb", 1, 9));
  for (int i = 0; i < 600; ++i) {
    const double low = random.normal();
    const double high = low + 0.5 * random.normal();  // a correlation of 0.89
    all.begins(1, {low, high});
    if (low < -0.4) selected.begins(1, {low, high});
    if (low >= -0.4) selected.begins(0, {low});
  }
  EXPECT_NEAR(trust_in(all), 0.89, 0.03);
  EXPECT_NEAR(trust_in(selected), 0.89, 0.06);
}

TEST(Trust, WithoutResultsIsTheProductOverTheRungs) {
  Story story(problem_on("bohb", 1, 9));
  for (int i = 0; i < 40; ++i) story.begins(1, {1.0 * i, -1.0 * i});
  const RungTable table(story.problem(), story.history, {1, 3, 9});
  EXPECT_DOUBLE_EQ(table.trust(0), table.agreement(0, 1, 0.9) * 0.9);
  EXPECT_DOUBLE_EQ(table.trust(1), 0.9);  // the prior, without a pair
  EXPECT_DOUBLE_EQ(table.trust(2), 1);
}

// The lower rungs agree with each other, and the end refutes both.
TEST(Trust, GoesByTheEndOnceResultsAreThere) {
  Story story(problem_on("bohb", 1, 9));
  for (int i = 0; i < 20; ++i) story.begins(2, {1.0 * i, 2.0 * i, (i * 7) % 20 + 0.0});
  const RungTable table(story.problem(), story.history, {1, 3, 9});
  EXPECT_GT(table.agreement(0, 1, 0.9), 0.95);
  EXPECT_LT(table.trust(0), 0.5);
  EXPECT_LT(table.trust(1), 0.5);
}

// With rungs at 1, 3 and 9, a trial of the lowest bracket costs 3 steps, one of the highest 9. The
// hedge gets a quarter of the work, however well the rungs agree.
TEST(Brackets, AQuarterOfTheWorkIsForTrialsThatNoRungDecidesOn) {
  Story story(problem_on("bohb", 1, 9));
  for (int i = 0; i < 40; ++i) story.begins(0, {1.0 * i});
  for (int i = 0; i < 10; ++i) story.begins(2, {1.0 * i, 1.0 * i, 1.0 * i});
  std::vector<double> begun(3, 0);
  for (const Stage& stage : first_stages(story.problem(), story.history, 1000)) {
    begun[static_cast<std::size_t>(stage.bracket)] += 1;
  }
  begun[0] += 40;
  begun[2] += 10;
  const double low = begun[0] * (1 + 2.0 / 3 + 6.0 / 9) + begun[1] * (3 + 6.0 / 3);
  EXPECT_NEAR(9 * begun[2] / (9 * begun[2] + low), 0.25, 0.02);
}

TEST(Trust, AnUninformativeFirstRungMovesTrialsUp) {
  Random random(4);
  Story blind(problem_on("bohb", 1, 9));
  Story seeing(problem_on("bohb", 1, 9));
  for (int i = 0; i < 30; ++i) {
    const double low = random.normal();
    blind.begins(1, {low, random.normal()});
    seeing.begins(1, {low, low});
  }
  const auto share_of_lowest = [](const Story& story) {
    int lowest = 0;
    for (const Stage& stage : first_stages(story.problem(), story.history, 200)) {
      lowest += stage.bracket == 0;
    }
    return lowest;
  };
  EXPECT_LT(share_of_lowest(blind), 120);
  EXPECT_GT(share_of_lowest(seeing), 180);
}

TEST(Scores, HigherRungsCorrectLowerRungs) {
  Story story(problem_on("bohb", 1, 9));
  story.begins(0, {0.1});       // good, and never compared again
  story.begins(1, {0.2, 0.9});  // good early, poor later
  story.begins(1, {0.3, 0.5});  // the other way round
  story.begins(0, {0.4});
  story.begins(2, {0.5, 0.95, 0.05});  // poor early, poor later, the best at the end of one
  const std::vector<double> scores = scores_from_rung(story.problem(), story.history, 0);
  // Places of rung 0: 0 1 2 3 4. At rung 1, trials 1, 2 and 4 exchange places 1, 2 and 4.
  EXPECT_LT(scores[0], scores[2]);
  EXPECT_LT(scores[2], scores[1]);
  EXPECT_LT(scores[1], scores[3]);
  EXPECT_LT(scores[3], scores[4]);
}

TEST(Scores, EqualTrialsHoldEqualScores) {
  Problem problem = problem_on("bohb", 1, 9);
  Story story(problem);
  for (const double loss : {1.0, 2.0, 3.0, 4.0}) story.begins(0, {loss, 5.0});
  const std::vector<double> scores = scores_from_rung(problem, story.history, 0);
  EXPECT_EQ(scores[0], scores[3]) << "the second rung cannot tell them apart";
  problem.revision = 1;
  EXPECT_LT(scores_from_rung(problem, story.history, 0)[0],
            scores_from_rung(problem, story.history, 0)[3]);
}

TEST(Scores, OfAHigherRungIgnoreLowerRungs) {
  Story story(problem_on("bohb", 1, 9));
  story.begins(0, {0.1});
  story.begins(1, {0.2, 0.9});
  story.begins(1, {0.3, 0.5});
  const std::vector<double> scores = scores_from_rung(story.problem(), story.history, 1);
  EXPECT_TRUE(std::isnan(scores[0]));
  EXPECT_LT(scores[2], scores[1]);
}

TEST(Scores, AreMissingWithoutAValueAndInfiniteWhereInfeasible) {
  Story story(problem_on("bohb", 1, 9));
  story.begins(0, {});
  story.begins(0, {0.5});
  story.history.events.push_back(fact(1, api::FactKind::kRung, 3, std::nullopt));
  story.begins(0, {});
  story.history.events.push_back(fact(2, api::FactKind::kFailed, 0, std::nullopt));
  const std::vector<double> scores = scores_from_rung(story.problem(), story.history, 0);
  EXPECT_TRUE(std::isnan(scores[0]));
  EXPECT_TRUE(std::isinf(scores[1]));
  EXPECT_TRUE(std::isinf(scores[2]));
}

}  // namespace
}  // namespace fettle::search
