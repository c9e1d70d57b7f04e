#include "search/maths/ranking.h"

#include <gtest/gtest.h>

#include <limits>

#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using Order = std::vector<std::int64_t>;

std::vector<api::Objective> objectives(const std::vector<api::Direction>& directions) {
  std::vector<api::Objective> out;
  for (const api::Direction direction : directions) {
    out.push_back({"metric" + std::to_string(out.size()), direction, {}, api::Take::kLast});
  }
  return out;
}

constexpr api::Direction kMin = api::Direction::kMinimize;
constexpr api::Direction kMax = api::Direction::kMaximize;

void add(Ranking& ranking, const Event& event) { ranking.add(event.trial, event.fact); }

TEST(Ranking, ResultsThenStoppedThenInfeasible) {
  Ranking ranking(objectives({kMin}));
  add(ranking, fact(0, api::FactKind::kFailed, 9, std::nullopt));
  add(ranking, fact(1, api::FactKind::kStopped, 3, 0.1));
  add(ranking, fact(2, api::FactKind::kStopped, 9, 0.5));  // further, despite a worse value
  add(ranking, fact(3, api::FactKind::kStopped, 9, 0.4));
  add(ranking, result(4, 1e300));
  add(ranking, result(5, -1e300));
  add(ranking, result(6, std::nullopt));
  add(ranking, result(7, std::numeric_limits<double>::quiet_NaN()));
  add(ranking, fact(8, api::FactKind::kRung, 1, 0.0));  // continues
  EXPECT_EQ(ranking.order(), (Order{5, 4, 3, 2, 1, 0, 6, 7}));
}

TEST(Ranking, DirectionsAreTurned) {
  Ranking ranking(objectives({kMax}));
  for (std::int64_t trial = 0; trial < 4; ++trial) {
    add(ranking, result(trial, static_cast<double>(trial)));
  }
  EXPECT_EQ(ranking.order(), (Order{3, 2, 1, 0}));
}

TEST(Ranking, TiesGoToTheFirstLearnt) {
  Ranking ranking(objectives({kMin}));
  for (const std::int64_t trial : {5, 2, 9}) add(ranking, result(trial, 1.0));
  EXPECT_EQ(ranking.order(), (Order{5, 2, 9}));
}

TEST(Ranking, ALaterResultReplacesAnEarlierOne) {
  Ranking ranking(objectives({kMin}));
  add(ranking, result(0, 1.0));
  add(ranking, result(1, 2.0));
  add(ranking, result(0, 3.0));
  EXPECT_EQ(ranking.order(), (Order{1, 0}));
  EXPECT_EQ(ranking.size(), 2U);
}

TEST(Ranking, SeveralObjectivesGoByFrontThenByTheFirst) {
  Ranking ranking(objectives({kMin, kMax}));
  const std::vector<std::pair<double, double>> values = {
      {1, 1}, {2, 2}, {3, 3},  // the front
      {2, 1}, {3, 2},          // dominated once
      {3, 1},                  // dominated by the previous two
      {3, 3}};                 // equal to a point of the front: also on it
  for (std::size_t i = values.size(); i-- > 0;) {
    Event event = result(static_cast<std::int64_t>(i), values[i].first);
    event.fact.values.push_back(values[i].second);
    add(ranking, event);
    ranking.order();  // asking in between changes nothing
  }
  EXPECT_EQ(ranking.order(), (Order{0, 1, 6, 2, 3, 4, 5}));
}

TEST(Ranking, AMissingObjectiveIsInfeasible) {
  Ranking ranking(objectives({kMin, kMin}));
  add(ranking, result(0, 1.0));  // one value, two objectives
  Event event = result(1, 9.0);
  event.fact.values.push_back(9.0);
  add(ranking, event);
  EXPECT_EQ(ranking.order(), (Order{1, 0}));
}

TEST(Ranking, TiesDifferOnlyInTheOrderOfLearning) {
  Ranking ranking(objectives({kMax}));
  add(ranking, result(0, 2.0));
  add(ranking, result(1, 2.0));
  add(ranking, result(2, 3.0));
  add(ranking, result(3, std::nullopt));
  add(ranking, fact(4, api::FactKind::kFailed, 9, std::nullopt));
  add(ranking, fact(5, api::FactKind::kStopped, 9, 2.0));
  add(ranking, fact(6, api::FactKind::kStopped, 8, 2.0));
  EXPECT_TRUE(ranking.tied(0, 1));
  EXPECT_FALSE(ranking.tied(1, 2));
  EXPECT_FALSE(ranking.tied(0, 3));
  EXPECT_TRUE(ranking.tied(3, 4));
  EXPECT_FALSE(ranking.tied(0, 5));
  EXPECT_FALSE(ranking.tied(5, 6));
}

TEST(Ranking, LossesAreOfFeasibleResults) {
  Ranking ranking(objectives({kMax}));
  add(ranking, result(0, 2.0));
  add(ranking, result(1, std::nullopt));
  add(ranking, fact(2, api::FactKind::kStopped, 9, 2.0));
  EXPECT_EQ(*ranking.losses(0), std::vector<double>{-2.0});
  EXPECT_EQ(ranking.losses(1), nullptr);
  EXPECT_EQ(ranking.losses(2), nullptr);
  EXPECT_EQ(ranking.losses(3), nullptr);
}

}  // namespace
}  // namespace fettle::search
