// Texts and JSON about replicates.
#include "cli/views/replicates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "cli/testing/test_studies.h"
#include "cli/views/screen.h"
#include "cli/views/summary.h"
#include "cli/views/trial_table.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;

const Style kPlain = {.color = false, .unicode = true};

api::BestTrial best_with(api::ReplicateResults results) {
  api::BestTrial best;
  best.objectives = {0.912};
  best.replicates = results;
  return best;
}

TEST(ReplicatesText, ShowsTheResultAndTheMeanOfFurtherRuns) {
  EXPECT_EQ(replicates_text(best_with({5, 0.905, 0.004, 0})),
            "0.912 measured; 0.905 ± 0.004 in 5 further runs");
  EXPECT_EQ(replicates_text(best_with({1, 0.905, std::nullopt, 0})),
            "0.912 measured; 0.905 in 1 further run");
  EXPECT_EQ(replicates_text(best_with({2, 0.9, 0.1, 3})),
            "0.912 measured; 0.9 ± 0.1 in 2 further runs, 3 more failed");
  EXPECT_EQ(replicates_text(best_with({0, std::nullopt, std::nullopt, 3})),
            "0.912 measured; all 3 further runs failed");
  EXPECT_EQ(replicates_text(best_with({0, std::nullopt, std::nullopt, 1})),
            "0.912 measured; the only further run failed");
  EXPECT_EQ(replicates_text(api::BestTrial()), "");
}

// Trial 3, which runs, repeats trial 0.
RunView repeating() {
  RunView view = view_in_the_middle();
  view.study.spec.replicates = api::Replicates{1, 4};
  api::Trial trial = *view.trials[3];
  trial.spec.search.replicates = "digits-0";
  view.trials[3] = std::make_shared<const api::Trial>(std::move(trial));
  bring_up_to_date(view);
  return view;
}

TEST(ReplicatesText, StandsBesideTheTrialsThatRepeat) {
  const RunView view = repeating();
  EXPECT_THAT(render_trials(view, kAnyWidth, {}), HasSubstr("adam  repeats digits-0\n"));
  EXPECT_THAT(trials_csv(view), HasSubstr(",parameters.optimizer,repeats,message\n"));
  EXPECT_THAT(trials_csv(view), HasSubstr(",0.002,adam,digits-0,\n"));
  EXPECT_THAT(render_screen(view, 100, kAllRows, kPlain), HasSubstr("repeats digits-0"));
}

TEST(ReplicatesText, CountsReplicatesBesideTheBudget) {
  const RunView view = repeating();
  EXPECT_EQ(planned_trials(view.study), 14) << "10 of the budget, and 4";
  EXPECT_THAT(render_summary(
                  view, [](const auto&, auto) { return ""; }, "fettle", kPlain),
              HasSubstr("5 trials, 1 of them a replicate: "));
}

TEST(ReplicatesText, StandsBelowTheBest) {
  RunView view = repeating();
  view.study.status.best[0].replicates = api::ReplicateResults{2, 0.88, 0.01, 0};
  const std::string words = "0.9012 measured; 0.88 ± 0.01 in 2 further runs";
  EXPECT_THAT(best_yaml(view), HasSubstr("# " + words + '\n'));
  EXPECT_THAT(render_screen(view, 100, kAllRows, kPlain), HasSubstr(words));
  const Json json = best_json(view);
  EXPECT_EQ(json.find("replicates")->dump(),
            R"({"runs":2,"mean":0.88,"deviation":0.01,"failed":0})");
}

TEST(ReplicatesText, AReplicateIsNeverTheBestSoFar) {
  RunView view = repeating();
  api::Trial better = *view.trials[3];
  better.status.facts = {{.seq = 99, .values = {0.99}}};
  view.trials[3] = std::make_shared<const api::Trial>(std::move(better));
  const std::vector<TrialResult> results = results_in_order(view.study.spec, view.trials);
  ASSERT_FALSE(results.empty());
  EXPECT_EQ(results.back().trial, "digits-3");
  EXPECT_FALSE(results.back().best_so_far);
}

}  // namespace
}  // namespace fettle::cli
