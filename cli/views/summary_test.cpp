#include "cli/views/summary.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli/testing/test_studies.h"
#include "cli/views/time_spent.h"

namespace fettle::cli {
namespace {

const Style kPlain = {.color = false, .unicode = true};
std::string log_of(const std::string& trial, std::int64_t run) {
  return "/there/" + trial + "/r" + std::to_string(run) + ".log";
}

// Returns a study of the built-in trainer.
RunView trained() {
  RunView view = view_at_the_end();
  view.study.spec.trial.trainer.emplace();
  return view;
}

TEST(Summary, ShowsTheTestAccuracyOnlyWhereNoDecisionSawIt) {
  const auto shown = [](const RunView& view) {
    return render_summary(view, log_of, "fettle", kPlain).find("no decision saw") !=
           std::string::npos;
  };
  RunView view = trained();
  EXPECT_TRUE(shown(view));
  view.study.spec.objectives.emplace_back().metric = "test_accuracy";
  EXPECT_FALSE(shown(view));
  view = view_at_the_end();
  EXPECT_FALSE(shown(view)) << "another program may mean anything by it";
}

TEST(Summary, SaysEverythingAPersonWantsToKnow) {
  EXPECT_EQ(render_summary(trained(), log_of, "fettle", kPlain),
            R"(digits succeeded after 31 s: all 3 trials are done
3 trials: 1 completed, 1 stopped early, 1 failed

Best: accuracy 0.9012, digits-0 at epoch 9
      0.8912 accuracy on the test images, which no decision saw

The best configuration, ready to paste:

  parameters:
    learning_rate: 0.0123
    optimizer: sgd

Where the time went: 2 slots for 31 s
  training                  40 s  64.8%
  waiting for data         4.2 s   6.9%
  waiting to start        300 ms   0.5%
  search and bookkeeping   1.0 s   1.6%
  no trial left to start    16 s  26.2%
  Trials waited 10 s in all for a slot.

What failed:
  1 trial: exit code 3: cannot open ?[31mdata
    log: /there/digits-2/r0.log

More: fettle trials digits; fettle logs digits-0; fettle status digits
)");
}

TEST(Summary, SaysHowManyTrialsPausedAtARung) {
  RunView view = view_at_the_end();
  api::Trial trial = *view.trials[0];
  trial.status.facts.back().kind = api::FactKind::kStopped;
  view.trials[0] = std::make_shared<const api::Trial>(trial);
  EXPECT_NE(render_summary(view, log_of, "fettle", kPlain)
                .find("1 stopped early (1 paused at a rung), 1 failed"),
            std::string::npos);
}

TEST(Summary, GivesMachinesTheSame) {
  const Json json = summary_json(view_at_the_end(), log_of);
  EXPECT_EQ(*json.find("state"), Json("succeeded"));
  EXPECT_EQ(*json.find("reason"), Json("TrialsDone"));
  const Json& best = *json.find("best");
  EXPECT_EQ(*best.find("trial"), Json("digits-0"));
  EXPECT_EQ(*best.find("objective"), Json(0.9012));
  EXPECT_EQ(*best.find("parameters")->find("optimizer"), Json("sgd"));
  EXPECT_EQ(*json.find("failures")->as_array()[0].find("trials"), Json(1));
}

TEST(Summary, ListsTheParetoFront) {
  RunView view = view_at_the_end();
  view.study.spec.objectives.push_back({"latency", api::Direction::kMinimize, {}, {}});
  api::BestTrial best = view.study.status.best.front();
  best.objectives = {0.9, 20};
  view.study.status.best = {best, best};
  view.study.status.best[1].objectives = {0.8, 10};
  view.study.status.hypervolume = 3.25;
  EXPECT_NE(render_summary(view, log_of, "fettle", kPlain).find(R"(
The Pareto front has 2 trials and a hypervolume of 3.25:
  digits-0  accuracy 0.9, latency 20
  digits-0  accuracy 0.8, latency 10
)"),
            std::string::npos);
  const Json json = summary_json(view, log_of);
  EXPECT_EQ(*json.find("hypervolume"), Json(3.25));
  EXPECT_EQ(json.find("front")->as_array().size(), 2U);
}

TEST(Summary, HasNoBestWhereThereIsNone) {
  RunView view = view_at_the_end();
  view.study.status.best.clear();
  EXPECT_TRUE(summary_json(view, log_of).find("best")->is_null());
  EXPECT_EQ(render_summary(view, log_of, "fettle", kPlain).find("Best"), std::string::npos);
}

TEST(Summary, PrintsTheBestConfigurationByItself) {
  EXPECT_EQ(best_yaml(view_at_the_end()), R"(# accuracy 0.9012: digits-0 at epoch 9
parameters:
  learning_rate: 0.0123
  optimizer: sgd
)");
  EXPECT_EQ(*best_json(view_at_the_end()).find("trial"), Json("digits-0"));
}

TEST(Failures, AreToldWithTheirLastWords) {
  RunView view = view_at_the_end();
  api::Trial trial = *view.trials[2];
  trial.status.runs[0].message =
      "exit code 1: Traceback " + std::string(1000, '.') + " ValueError: no such file";
  view.trials[2] = std::make_shared<const api::Trial>(trial);
  const std::string text = render_summary(view, log_of, "fettle", kPlain);
  EXPECT_NE(text.find("1 trial: exit code 1: Traceback"), std::string::npos);
  EXPECT_NE(text.find("ValueError: no such file\n"), std::string::npos);
}

TEST(Failures, WithOneReasonButForNumbersAreOne) {
  RunView view = view_at_the_end();
  for (const char* message : {"exit code 4: cannot open x", "hung for 10 s", "hung for 12 s"}) {
    api::Trial trial = *view.trials[2];
    trial.status.runs[0].message = message;
    view.trials.push_back(std::make_shared<const api::Trial>(trial));
  }
  const auto groups = group_failures(view, log_of);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].trials, 2);
  EXPECT_EQ(groups[0].reason, "hung for 10 s");
  EXPECT_EQ(groups[0].log, "/there/digits-2/r0.log");
}

double sum_of_parts(const TimeSpent& spent) {
  return spent.training + spent.data_wait + spent.waiting + spent.start_up + spent.retrying +
         spent.nothing_ran + spent.no_trial_left + spent.bookkeeping;
}

// 30 s of two slots: trial 0 ran all the time, trial 1 for 12 s, trial 2 from second 12 to 14.
TEST(TimeSpent, SumsToTheTimeOfTheSlots) {
  const TimeSpent spent = time_spent(view_at_the_end());
  EXPECT_EQ(spent.slots, 2);
  EXPECT_NEAR(spent.waiting, 0.3, 1e-9);
  EXPECT_NEAR(spent.data_wait, 0.1 * (29.9 + 11.9), 1e-9);
  EXPECT_NEAR(spent.no_trial_left, 16, 1e-9);  // of the second slot, after trial 2
  EXPECT_NEAR(spent.wall_seconds, 30.5, 1e-9) << "as the headline says";
  EXPECT_NEAR(sum_of_parts(spent), 2 * spent.wall_seconds, 1e-9);
}

// A failure at once, and a wait of 4 s for the second run; later the study is interrupted for 60 s.
TEST(TimeSpent, WaitingForARetryAndInterruptionsAreShown) {
  RunView view = view_at_the_end();
  api::Trial trial = *view.trials[0];
  trial.status.runs.resize(1);
  api::RunRecord run = trial.status.runs[0];
  const std::int64_t start_ms = run.started_ms;
  view.study.status.started_ms = start_ms;
  run.outcome = api::Outcome::kFailed;
  run.ended_ms = start_ms + 1'000;
  trial.status.runs[0] = run;
  run.run = 1;
  run.started_ms = run.running_ms = start_ms + 5'000;
  run.ended_ms = start_ms + 10'000;
  run.outcome = api::Outcome::kDisrupted;
  trial.status.runs.push_back(run);
  run.run = 2;
  run.started_ms = run.running_ms = start_ms + 70'000;
  run.ended_ms = start_ms + 71'000;
  run.outcome = api::Outcome::kSucceeded;
  trial.status.runs.push_back(run);
  view.trials = {std::make_shared<const api::Trial>(trial)};
  view.study.status.ended_ms = start_ms + 71'500;
  const TimeSpent spent = time_spent(view);
  EXPECT_NEAR(spent.retrying, 4, 1e-9);
  EXPECT_NEAR(spent.nothing_ran, 60, 1e-9);
  EXPECT_NEAR(spent.wall_seconds, 71.5, 1e-9);
  EXPECT_NEAR(sum_of_parts(spent), 71.5, 1e-9);
}

// It waits until the Study shows whether other trials fail with the same message.
TEST(TimeSpent, ATrialThatIsGivenUpWaitedToRetryUntilThen) {
  RunView view = view_at_the_end();
  api::Trial trial = *view.trials[0];
  trial.status.runs.resize(1);
  api::RunRecord& run = trial.status.runs[0];
  run.outcome = api::Outcome::kFailed;
  run.ended_ms = run.started_ms + 1'000;
  trial.status.phase = api::TrialPhase::kFailed;
  trial.status.facts = {
      {.seq = 1, .kind = api::FactKind::kFailed, .values = {}, .at_ms = run.ended_ms + 4'000}};
  view.trials = {std::make_shared<const api::Trial>(trial)};
  EXPECT_NEAR(time_spent(view).retrying, 4, 1e-9);
}

// A wait for a shared machine must not look like slowness of the program.
TEST(TimeSpent, WaitingForTheMachineIsNoStartUp) {
  RunView view = view_at_the_end();
  api::Trial trial = *view.trials[0];
  api::RunRecord& run = trial.status.runs[0];
  run.running_ms = run.started_ms + 10'000;
  view.trials[0] = std::make_shared<const api::Trial>(trial);
  const TimeSpent spent = time_spent(view);
  EXPECT_NEAR(spent.waiting, 10.2, 1e-9);
  EXPECT_NEAR(spent.start_up, 0, 1e-9);
  EXPECT_NEAR(sum_of_parts(spent), static_cast<double>(spent.slots) * spent.wall_seconds, 1e-9);
}

TEST(TimeSpent, IsNothingBeforeAnythingRan) {
  RunView view;
  EXPECT_EQ(render_time_spent(time_spent(view), kPlain), "");
}

}  // namespace
}  // namespace fettle::cli
