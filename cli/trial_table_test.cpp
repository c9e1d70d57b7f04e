#include "cli/trial_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "cli/test_studies.h"

namespace fettle::cli {
namespace {

TEST(TrialTable, ListsEveryTrial) {
  EXPECT_EQ(render_trials(view_in_the_middle(), kAnyWidth, {}), R"(  trial
)");
}

TEST(TrialTable, IsCsvThatASpreadsheetReads) {
  EXPECT_EQ(trials_csv(view_in_the_middle()), R"(trial
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
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2) << csv;
  EXPECT_NE(csv.find(R"("parameters.a,""b")"), std::string::npos) << csv;
  EXPECT_NE(csv.find(R"("'=cmd|'x'!A ""quoted"", twice")"), std::string::npos) << csv;
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
