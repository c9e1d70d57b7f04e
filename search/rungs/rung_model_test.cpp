// The model of places: its history and its suggestions.
#include "search/rungs/rung_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "search/gp/process/fit_memo.h"
#include "search/maths/fit_schedule.h"
#include "search/rungs/promotion.h"
#include "search/samplers/samplers.h"
#include "search/space/space.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

constexpr std::int64_t kSteps[] = {1, 3, 9};
constexpr std::int64_t kAsked = 6;  // enough for every bracket

Problem bohb_problem(std::int64_t revision) {
  Problem out = problem_of({real("x", 0, 1), real("y", 0, 1), choice("z", {"a", "b"})}, "bohb", 7);
  out.resource = {"epoch", 1, 9};
  out.parallelism = 4;
  out.revision = revision;
  return out;
}

// A history of `trials` random points in all brackets, some of them promoted; the last two have not
// reported yet.
History history_of(std::int64_t trials) {
  History out;
  Random random(11);
  const auto tell = [&](std::int64_t trial, std::size_t rung, double loss) {
    const bool last = rung == 2;
    const auto kind = last ? api::FactKind::kResult : api::FactKind::kRung;
    out.events.push_back(fact(trial, kind, kSteps[rung], loss));
    const bool pauses = !last && rung >= static_cast<std::size_t>(out.stages.back().bracket);
    if (pauses) out.events.push_back(fact(trial, api::FactKind::kStopped, kSteps[rung], loss));
  };
  for (std::int64_t trial = 0; trial < trials; ++trial) {
    const double x = random.uniform();
    const double y = random.uniform();
    const bool a = random.uniform() < 0.5;
    out.trials.push_back(*parse_json("{\"x\": " + Json(x).dump() + ", \"y\": " + Json(y).dump() +
                                     ", \"z\": \"" + (a ? "a" : "b") + "\"}"));
    const std::int64_t bracket = trial % 10 == 9 ? 2 : trial % 5 == 3 ? 1 : 0;
    const std::int64_t rung = std::max<std::int64_t>(bracket, trial % 4 == 2 ? 1 : 0);
    out.stages.push_back({.bracket = bracket, .rung = rung, .until_step = kSteps[rung]});
    if (trial + 2 >= trials) continue;
    const double loss = std::abs(x - 0.3) + (y - 0.6) * (y - 0.6) + (a ? 0.1 : 0);
    for (std::int64_t at = 0; at <= rung; ++at) {
      tell(trial, static_cast<std::size_t>(at), loss + 0.2 * random.uniform() / (1.0 + at));
    }
  }
  return out;
}

// Expects the suggestions that the last program of the first revision made after as many trials.
void expect_recorded(std::int64_t trials, const std::vector<std::string>& recorded) {
  const auto sampler = std::move(make_sampler(bohb_problem(kFirstRevision))).value();
  const std::vector<Json> now = sampler->suggest(history_of(trials), kAsked).points;
  ASSERT_EQ(now.size(), recorded.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Json then = *parse_json(recorded[i]);
    for (const char* name : {"x", "y"}) {
      EXPECT_NEAR(now[i].find(name)->as_double(), then.find(name)->as_double(), 1e-6) << i;
    }
    EXPECT_EQ(*now[i].find("z"), *then.find("z")) << i;
  }
}

TEST(RungModel, TheFirstRevisionSuggestsTheRecordedPoints) {
  expect_recorded(30, {R"({"x":0.23991053998510886,"y":0.3703908326102845,"z":"b"})",
                       R"({"x":0.24662299509201302,"y":0.3059840554544811,"z":"b"})",
                       R"({"x":0.22009623866386105,"y":0.5156368168075729,"z":"b"})",
                       R"({"x":0.24848665823438262,"y":0.2931498148423984,"z":"b"})",
                       R"({"x":0.27571229117524954,"y":0.3703976670708793,"z":"b"})",
                       R"({"x":0.22062799980577347,"y":0.32170814423674066,"z":"b"})"});
  expect_recorded(75, {R"({"x":0.28798444249084126,"y":0.6170718678384571,"z":"b"})",
                       R"({"x":0.28843016417549155,"y":0.6179445461299472,"z":"b"})",
                       R"({"x":0.2888039806551837,"y":0.6187765268069733,"z":"b"})",
                       R"({"x":0.28912689150105536,"y":0.6194843292529757,"z":"b"})",
                       R"({"x":0.28941740306113845,"y":0.620112182253713,"z":"b"})",
                       R"({"x":0.2896834306592987,"y":0.620685988789765,"z":"b"})"});
}

// Keeps the longest history that it saw: the history of the lowest bracket's model.
class Listener final : public Sampler {
 public:
  explicit Listener(History& told) : told_(told) {}
  Suggestion suggest(const History& history, std::int64_t /*n*/) override {
    if (history.events.size() > told_.events.size()) told_ = history;
    return {.points = {*parse_json("{\"x\": " + std::to_string(history.trials.size()) + "}")}};
  }
  std::string description() const override { return "listener"; }

 private:
  History& told_;
};

History told_to_model(std::int64_t revision, const History& history) {
  History out;
  const auto factory = [&](const Problem&) -> Result<std::unique_ptr<Sampler>> {
    return std::unique_ptr<Sampler>(std::make_unique<Listener>(out));
  };
  const auto model = std::move(make_rung_model(bohb_problem(revision), factory)).value();
  EXPECT_EQ(model->suggest(history, kAsked).points.size(), 6U);
  return out;
}

// Returns the places of trials when `count` of them were told.
std::map<std::int64_t, double> places_at(const History& told, std::size_t count) {
  std::map<std::int64_t, double> out;
  for (const Event& event : told.events) {
    out[event.trial] = *event.fact.values.at(0);
    if (out.size() == count) break;
  }
  return out;
}

TEST(RungModel, AFitRestsOnThePlacesOfItsTime) {
  static_assert(last_fit(40) == 40 && last_fit(41) == 40 && last_anchor(41) == 32);
  const History told = told_to_model(kNewestRevision, history_of(42));
  const History later = told_to_model(kNewestRevision, history_of(43));
  for (const std::size_t count : {32U, 40U}) {
    EXPECT_EQ(places_at(told, count), places_at(later, count)) << count;
  }
  EXPECT_NE(told_to_model(kFirstRevision, history_of(42)).events.at(0).fact.values,
            told_to_model(kFirstRevision, history_of(43)).events.at(0).fact.values);
  // In the end all trials have their present places.
  const std::vector<double> now =
      scores_from_rung(bohb_problem(kNewestRevision), history_of(43), 0);
  const std::map<std::int64_t, double> last = places_at(later, 1000);
  EXPECT_EQ(last.size(), 41U);
  for (const auto& [trial, place] : last) EXPECT_EQ(place, now[static_cast<std::size_t>(trial)]);
}

// Returns the number of fits of a second ask, after one more trial has ended.
std::size_t fits_of_next_ask(std::int64_t revision) {
  const auto memo = std::make_shared<gp::FitMemo>();
  const auto factory = [&](const Problem& places) -> Result<std::unique_ptr<Sampler>> {
    GpSettings settings;
    settings.revision = places.revision;
    settings.memo = memo;
    FETTLE_ASSIGN(Space space, Space::make(places.parameters));
    return make_gp(std::move(space), places.algorithm.seed, settings, places.objectives);
  };
  const auto model = std::move(make_rung_model(bohb_problem(revision), factory)).value();
  EXPECT_EQ(model->suggest(history_of(42), kAsked).points.size(), 6U);
  const std::size_t before = memo->size();
  EXPECT_GE(before, 2U);
  EXPECT_EQ(model->suggest(history_of(43), kAsked).points.size(), 6U);
  return memo->size() - before;
}

TEST(RungModel, MakesAFitOnce) {
  EXPECT_EQ(fits_of_next_ask(kNewestRevision), 0U);
  EXPECT_EQ(fits_of_next_ask(kFirstRevision), 2U) << "every value changes the places of all";
}

TEST(RungModel, SuggestsTheSameAfterARestart) {
  const Problem problem = bohb_problem(kNewestRevision);
  const auto old = std::move(make_sampler(problem)).value();
  for (std::int64_t trials = 10; trials <= 70; trials += 4) {
    const auto restarted = std::move(make_sampler(problem)).value();
    EXPECT_EQ(old->suggest(history_of(trials), kAsked).points,
              restarted->suggest(history_of(trials), kAsked).points);
  }
}

// Trials whose losses at the two lowest rungs are the same in half of the space, where they are
// best; `apart`: the difference between them at the second rung.
History plateau(std::int64_t trials, double apart) {
  History out = history_of(trials);
  for (Event& event : out.events) {
    const auto trial = static_cast<std::size_t>(event.trial);
    if (out.trials[trial].find("x")->as_double() > 0.5) continue;
    const bool second = event.fact.step > 1;
    event.fact.values = {second ? 0.2 + apart * static_cast<double>(event.trial) : 0.1};
  }
  return out;
}

// Returns how many of the points, asked for one by one and forgotten again, are draws from the
// prior: the points that random search suggests here.
int draws(std::int64_t revision, double apart) {
  const Problem problem = bohb_problem(revision);
  Problem random = problem;
  random.algorithm.name = api::AlgorithmKind::kRandom;
  int out = 0;
  for (std::int64_t trials = 30; trials <= 60; trials += 3) {
    const History history = plateau(trials, apart);
    const Json point = std::move(make_sampler(problem)).value()->suggest(history, 1).points.at(0);
    out += point == std::move(make_sampler(random)).value()->suggest(history, 1).points.at(0);
  }
  return out;
}

TEST(RungModel, DrawsWhereItsBestIsOneCurveAgainAndAgain) {
  EXPECT_GT(draws(kNewestRevision, 0), 3);
  EXPECT_EQ(draws(kNewestRevision, 0.001), 0) << "ties at the lowest rung alone";
  EXPECT_EQ(draws(kFirstRevision, 0), 0);
}

}  // namespace
}  // namespace fettle::search
