// A study whose objective is noisy, and whose leaders are run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

// The value is x and noise of up to 1, which follows from the trial's seed.
const std::string kNoisy =
    R"(seed=`sed -n 's/.*"seed": *\([0-9]*\).*/\1/p' "$FETTLE_TRIAL"`; echo "$FETTLE_PARAM_X $seed" | )"
    R"(awk '{printf "{\"value\": %.9f}\n", $1 + ($2 % 1000) / 1000}')";

StudyText noisy_study() {
  StudyText text;
  text.script = kNoisy;
  text.budget = "{trials: 6, parallelism: 2}";
  text.search = "algorithm: {name: random, seed: 7}\n  replicates: {leaders: 2, runs: 3}";
  return text;
}

std::string repeated_by(const Json& trial) {
  const Json* repeated = trial.find("spec")->find("search")->find("replicates");
  return repeated == nullptr ? "" : repeated->as_string();
}

std::string name_of(const Json& trial) { return trial.find("metadata")->find("name")->as_string(); }

double value_of(const Json& trial) {
  return trial.find("status")->find("report")->find("metrics")->find("value")->as_double();
}

// The mean of each leader's replicates.
std::map<std::string, double> means_of(const Json& trials) {
  std::map<std::string, double> means;
  for (const Json& trial : trials.as_array()) {
    if (!repeated_by(trial).empty()) means[repeated_by(trial)] += value_of(trial) / 3;
  }
  return means;
}

TEST(Replicates, TellHowMuchOfAResultIsLuck) {
  Workshop shop;
  shop.write("study.yaml", noisy_study().yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  const Json trials = shop.trials();
  ASSERT_EQ(trials.as_array().size(), 12U);
  // The two trials with the best results are the leaders, each repeated three times.
  std::multimap<double, std::string> ranking;
  std::set<std::int64_t> seeds;
  std::map<std::string, std::int64_t> repeated;
  for (const Json& trial : trials.as_array()) {
    seeds.insert(trial.find("spec")->find("seed")->as_integer());
    const std::string leader = repeated_by(trial);
    if (leader.empty()) {
      ranking.emplace(-value_of(trial), name_of(trial));
    } else {
      ++repeated[leader];
    }
  }
  EXPECT_EQ(seeds.size(), 12U);
  const std::string first = ranking.begin()->second;
  const std::string second = std::next(ranking.begin())->second;
  EXPECT_EQ(repeated, (std::map<std::string, std::int64_t>{{first, 3}, {second, 3}}));
  // The best trial has the best mean of further runs.
  const std::map<std::string, double> means = means_of(trials);
  ASSERT_LT(means.at(first), means.at(second)) << "the seed is chosen so: the first was lucky";
  const std::string& best = second;
  const Json result = parse_json(shop.fettle({"best", "--output", "json"}).out).value();
  EXPECT_EQ(result.find("trial")->as_string(), best);
  const Json& replicates = *result.find("replicates");
  EXPECT_EQ(replicates.find("runs")->as_integer(), 3);
  EXPECT_NEAR(replicates.find("mean")->as_double(), means.at(best), 1e-9);
  EXPECT_GT(replicates.find("deviation")->as_double(), 0);
  // The output for people.
  EXPECT_THAT(done.out, HasSubstr("12 trials, 6 of them replicates: 12 completed"));
  EXPECT_THAT(done.out, testing::ContainsRegex(" measured; .* ± .* in 3 further runs"));
  EXPECT_THAT(done.out, HasSubstr("(repeats " + first + ") completed: value "));
  EXPECT_THAT(shop.fettle({"best"}).out, HasSubstr(" in 3 further runs\n"));
  EXPECT_THAT(shop.fettle({"trials"}).out, HasSubstr("repeats " + first));
  EXPECT_THAT(shop.fettle({"status"}).out, HasSubstr(" in 3 further runs"));
  EXPECT_THAT(shop.fettle({"why", name_of(trials.as_array().back())}).out,
              HasSubstr("with another seed"));
  const Finished replay = shop.fettle({"replay"});
  EXPECT_EQ(replay.code, 0) << replay.out;
  EXPECT_THAT(replay.out,
              HasSubstr("6 suggestions, 0 judgements (0 stops) and 6 replicates decided "
                        "again: all as recorded"));
}

TEST(Replicates, OfAStudyThatWasInterruptedContinue) {
  Workshop shop;
  StudyText text = noisy_study();
  text.budget = "{trials: 2, parallelism: 1}";
  // The first replicate waits to be let go.
  text.script = "echo x >> began; if [ `wc -l < began` = 3 ]; then " + std::string(kUntilGo) +
                "; else " + kNoisy + "; fi";
  const pid_t runner = shop.run_until_begun(text, 3);
  const Finished cut = shop.interrupt(runner, SIGINT);
  EXPECT_THAT(cut.out + cut.err, HasSubstr("To resume"));
  shop.write("go", "");
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  std::map<std::string, std::int64_t> repeated;
  const Json trials = shop.trials();
  for (const Json& trial : trials.as_array()) ++repeated[repeated_by(trial)];
  EXPECT_EQ(repeated,
            (std::map<std::string, std::int64_t>{{"", 2}, {"digits-0", 3}, {"digits-1", 3}}));
  EXPECT_EQ(shop.fettle({"replay"}).code, 0);
}

// A changed budget counts from then on; the repeated trials do not change.
TEST(Replicates, AreNotCountedByTheBudgetAndMayNotChange) {
  Workshop shop;
  StudyText text = noisy_study();
  shop.write("study.yaml", text.yaml());
  EXPECT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  text.search = "algorithm: {name: random, seed: 7}\n  replicates: {leaders: 2, runs: 4}";
  shop.write("study.yaml", text.yaml());
  const Finished refused = shop.fettle({"run", "study.yaml"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("spec.replicates.runs: was 3, now 4"));
  text = noisy_study();
  text.budget = "{trials: 8, parallelism: 2}";
  shop.write("study.yaml", text.yaml());
  EXPECT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  std::size_t searched = 0;
  const Json trials = shop.trials();
  for (const Json& trial : trials.as_array()) searched += repeated_by(trial).empty() ? 1 : 0;
  EXPECT_EQ(searched, 8U);
  EXPECT_EQ(shop.fettle({"replay"}).code, 0);
}

}  // namespace
}  // namespace fettle::e2e
