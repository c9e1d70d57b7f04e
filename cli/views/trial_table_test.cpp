#include "cli/views/trial_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

TEST(TrialTable, ListsEveryTrial) {
  EXPECT_EQ(render_trials(view_in_the_middle(), kAnyWidth, {}),
            R"(  trial     phase      epoch  accuracy   time  learning_rate  optimizer
  digits-0  Completed  9/9      0.9012   30 s         0.0123        sgd
  digits-1  Stopped    3/9         0.5   12 s         0.0001        sgd  asha: rung 1 (step 3): 0.5 is not among the best
  digits-2  Failed     0/9           -  1.9 s            0.1       adam  exit code 3: cannot open ?[31mdata
  digits-3  Running    4/9      0.8712   20 s          0.002       adam
  digits-4  Running    0/9           -   20 s          0.002       adam
)");
}

TEST(TrialTable, IsCsvThatASpreadsheetReads) {
  EXPECT_EQ(
      trials_csv(view_in_the_middle()),
      R"(trial,index,phase,step,accuracy,infeasible,seconds,runs,parameters.learning_rate,parameters.optimizer,message
digits-0,0,Completed,9,0.9012,false,29.9,1,0.0123,sgd,
digits-1,1,Stopped,3,0.5,false,11.9,1,1e-04,sgd,asha: rung 1 (step 3): 0.5 is not among the best
digits-2,2,Failed,0,,false,1.9,1,0.1,adam,exit code 3: cannot open ?[31mdata
digits-3,3,Running,4,0.8712,false,19.9,1,0.002,adam,
digits-4,4,Running,0,,false,19.9,1,0.002,adam,
)");
}

TEST(TrialTable, CsvSurvivesHostileValues) {
  RunView view = view_at_the_end();
  view.study.spec.parameters.resize(1);
  view.study.spec.parameters[0].name = "a,\"b";
  api::Trial trial = *view.trials[0];
  trial.spec.parameters = Json::object({{"a,\"b", "=cmd|'x'!A\n\"quoted\", twice"}});
  view.trials = {std::make_shared<const api::Trial>(trial)};
  const std::string csv = trials_csv(view);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 2) << csv;
  EXPECT_NE(csv.find(R"("parameters.a,""b")"), std::string::npos) << csv;
  EXPECT_NE(csv.find(R"("'=cmd|'x'!A ""quoted"", twice")"), std::string::npos) << csv;
}

TEST(TrialTable, AStudyWithoutStepsHasNoColumnOfThem) {
  RunView view = view_in_the_middle();
  view.study.spec.resource.max = 1;
  EXPECT_EQ(render_trials(view, kAnyWidth, {}).find("epoch"), std::string::npos);
}

// Its first rung violated a constraint that its end met, or the other way round.
TEST(TrialTable, ATrialIsInfeasibleIfItEndedSo) {
  for (const bool in_the_end : {false, true}) {
    RunView view = view_at_the_end();
    api::Trial trial = *view.trials[0];
    trial.status.facts = {
        {.seq = 1, .kind = api::FactKind::kRung, .step = 1, .values = {0.1}, .infeasible = true},
        {.seq = 2, .kind = api::FactKind::kStopped, .step = 1, .values = {0.1}},
        {.seq = 3, .step = 9, .values = {0.9}, .infeasible = in_the_end}};
    view.trials = {std::make_shared<const api::Trial>(trial)};
    EXPECT_EQ(render_trials(view, kAnyWidth, {}).find("infeasible") != std::string::npos,
              in_the_end);
    EXPECT_EQ(trials_csv(view).find(",true,") != std::string::npos, in_the_end);
  }
}

TEST(TrialTable, JsonParsesAndHoldsTheDocuments) {
  const auto parsed = parse_json(trials_json(view_in_the_middle()));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->as_array().size(), 5U);
  EXPECT_EQ(*parsed->as_array()[0].find("status")->find("phase"), Json("Completed"));
  EXPECT_EQ(*parse_json(trials_json(RunView{})), Json::array());
}

}  // namespace
}  // namespace fettle::cli
