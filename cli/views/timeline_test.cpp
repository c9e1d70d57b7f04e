#include "cli/views/timeline.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

std::vector<std::string> texts(const std::vector<TimelineEntry>& timeline) {
  std::vector<std::string> texts;
  for (const TimelineEntry& entry : timeline) {
    texts.push_back(render_entry(entry, kStartMs));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Timeline, TreatsExistingTrialsAsKnown) {
  const RunView view = view_in_the_middle();
  Timeline timeline;
  EXPECT_EQ(texts(timeline.observe(view.study, view.trials)), Texts{});
}

TEST(Timeline, TellsStartsAndEndsInOrderAndOnce) {
  const RunView view = view_in_the_middle();
  Timeline timeline;
  timeline.observe(view.study, {});
  EXPECT_EQ(texts(timeline.observe(view.study, view.trials)),
            (Texts{"[   0 ms] digits-0 started: learning_rate=0.0123 optimizer=sgd",
                   "[   0 ms] digits-1 started: learning_rate=0.0001 optimizer=sgd",
                   "[   12 s] digits-1 stopped at epoch 3: asha: rung 1 (step 3): 0.5 is not among "
                   "the best",
                   "[   12 s] digits-2 started: learning_rate=0.1 optimizer=adam",
                   "[   14 s] digits-2 failed: exit code 3: cannot open ?[31mdata",
                   "[   30 s] digits-0 completed: accuracy 0.9012 at epoch 9, the best so far",
                   "[   40 s] digits-3 started: learning_rate=0.002 optimizer=adam",
                   "[   40 s] digits-4 started: learning_rate=0.002 optimizer=adam"}));
  EXPECT_EQ(texts(timeline.observe(view.study, view.trials)), Texts{});
}

TEST(Timeline, SaysWhyATrialStartsAgain) {
  RunView view = view_in_the_middle();
  Timeline timeline;
  timeline.observe(view.study, view.trials);
  api::Trial trial = *view.trials[3];
  trial.status.runs[0].outcome = api::Outcome::kHung;
  trial.status.runs[0].message = "no report for 10 s";
  api::RunRecord again;
  again.run = 1;
  again.started_ms = kStartMs + 50'000;
  trial.status.runs.push_back(again);
  view.trials[3] = std::make_shared<const api::Trial>(trial);
  const auto told = timeline.observe(view.study, view.trials);
  EXPECT_EQ(texts(told),
            (Texts{"[   50 s] digits-3 started again (run 1); the last run ended Hung: "
                   "no report for 10 s"}));
  EXPECT_TRUE(told[0].warning);
}

TEST(Timeline, APromotedTrialContinues) {
  Timeline timeline;
  RunView view = view_in_the_middle();
  timeline.observe(view.study, view.trials);
  api::Trial trial = *view.trials[3];
  api::RunRecord run = trial.status.runs.back();
  trial.status.runs.back().outcome = api::Outcome::kSucceeded;
  run.run += 1;
  run.until_step = 9;
  trial.status.runs.push_back(run);
  view.trials[3] = std::make_shared<const api::Trial>(trial);
  const auto told = timeline.observe(view.study, view.trials);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].text, "digits-3 continues to epoch 9 (run 1)");
  EXPECT_FALSE(told[0].warning);
}

TEST(Timeline, ARunThatWaitsHasNotStarted) {
  RunView view = view_in_the_middle();
  Timeline timeline;
  view.trials.pop_back();
  const auto put = [&](std::int64_t running_ms, const std::string& message) {
    api::Trial trial = *view_in_the_middle().trials.back();
    trial.status.runs[0].started_ms = kStartMs + 40'000;
    trial.status.runs[0].running_ms = running_ms;
    trial.status.runs[0].message = message;
    std::vector<api::TrialPtr> trials = view.trials;
    trials.push_back(std::make_shared<const api::Trial>(trial));
    return texts(timeline.observe(view.study, trials));
  };
  timeline.observe(view.study, view.trials);
  EXPECT_EQ(put(0, "no room on this machine yet: it needs 1 GPU"),
            (Texts{"[   40 s] digits-4 waits: no room on this machine yet: it needs 1 GPU"}));
  EXPECT_EQ(put(0, "no room on this machine yet: it needs 1 core"), Texts{}) << "said already";
  EXPECT_EQ(put(kStartMs + 55'000, ""),
            (Texts{"[   55 s] digits-4 started: learning_rate=0.002 optimizer=adam"}));
}

TEST(Timeline, ATrialThatCompletedARungHasPaused) {
  RunView view = view_in_the_middle();
  api::Trial trial = *view.trials[0];
  ASSERT_FALSE(trial.status.facts.empty());
  trial.status.facts.back().kind = api::FactKind::kStopped;
  view.trials = {std::make_shared<const api::Trial>(trial)};
  Timeline timeline;
  timeline.observe(view.study, {});
  EXPECT_EQ(texts(timeline.observe(view.study, view.trials)).back(),
            "[   30 s] digits-0 paused: accuracy 0.9012 at epoch 9");
}

TEST(Timeline, TellsTheEndOfTheStudy) {
  const RunView view = view_at_the_end();
  Timeline timeline;
  api::Study before = view.study;
  before.status.conditions.clear();
  timeline.observe(before, view.trials);
  const auto told = timeline.observe(view.study, view.trials);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].text, "digits succeeded: all 3 trials are done");
  EXPECT_TRUE(told[0].ends_study);
  EXPECT_EQ(*told[0].data.find("reason"), Json("TrialsDone"));
}

TEST(Timeline, GivesMachinesTheValues) {
  const RunView view = view_in_the_middle();
  Timeline timeline;
  timeline.observe(view.study, {});
  const auto told = timeline.observe(view.study, view.trials);
  EXPECT_EQ(told[5].data.dump(),
            R"({"event":"trialCompleted","timeMs":1700000030000,"study":"digits",)"
            R"("trial":"digits-0","step":9,"objectives":{"accuracy":0.9012}})");
}

}  // namespace
}  // namespace fettle::cli
