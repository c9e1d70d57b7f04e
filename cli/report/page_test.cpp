// The report page: data cannot become markup, and the page shows the Study.
#include "cli/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "cli/common/embedded_file.h"
#include "cli/testing/test_studies.h"
#include "cli/views/reason.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(ScriptJson, NeverEndsTheElement) {
  const Json nasty = "</script><img src=x onerror=alert(1)><!--";
  const std::string text = script_json(nasty);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  const auto back = parse_json(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, nasty);
}

TEST(HtmlText, IsText) { EXPECT_EQ(html_text("<b>&"), "&lt;b&gt;&amp;"); }

TEST(Page, HoldsEverythingItNeeds) {
  const std::string page = render_page("di<gits", page_data(view_in_the_middle()));
  EXPECT_THAT(page, HasSubstr("<title>di&lt;gits</title>"));
  EXPECT_THAT(page, Not(HasSubstr("{{title}}")));
  const auto scripts = std::ranges::count_if(
      page_parts(), [](const EmbeddedFile& part) { return part.name.ends_with(".js"); });
  EXPECT_EQ(scripts, 19);                                                      // Chart.js and ours
  EXPECT_EQ(count(page, "</script>"), static_cast<std::size_t>(scripts) + 1);  // and the data
  for (const EmbeddedFile& part : page_parts()) {
    if (part.name == "page.html") continue;
    EXPECT_THAT(page, HasSubstr(std::string(part.bytes))) << part.name;
    EXPECT_EQ(part.bytes.find("</script"), std::string_view::npos) << part.name;
    EXPECT_EQ(part.bytes.find("</style"), std::string_view::npos) << part.name;
  }
  // The page loads nothing, whatever a browser is asked.
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr(" src=\"")));
}

TEST(PageData, TellsOfEveryTrial) {
  const RunView view = view_in_the_middle();
  const Json data = page_data(view);
  const auto& trials = data.find("trials")->as_array();
  ASSERT_EQ(trials.size(), view.trials.size());
  EXPECT_EQ(*trials[0].find("name"), Json("digits-0"));
  EXPECT_EQ(trials[0].find("values")->as_array().at(0), Json(0.9012));
  EXPECT_EQ(*trials[0].find("phase"), Json("Completed"));
  const auto& runs = trials[0].find("runs")->as_array();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].as_array().at(0), Json(100));
  EXPECT_EQ(runs[0].as_array().at(1), Json(30000));
  EXPECT_EQ(runs[0].as_array().at(3), Json(0));  // GPU-seconds
}

TEST(PageData, CountsTimeAsTheTerminalDoes) {
  const RunView view = view_in_the_middle();
  EXPECT_EQ(*page_data(view).find("study")->find("tookSeconds"), Json(elapsed_seconds(view)));
}

TEST(PageData, HasGpuSecondsOfRuns) {
  RunView view = view_in_the_middle();
  api::Trial trial = *view.trials[0];
  trial.status.runs[0].gpus = 0.5;
  trial.status.runs[0].workers = 4;
  view.trials[0] = std::make_shared<const api::Trial>(trial);
  const Json data = page_data(view);
  const auto& run = data.find("trials")->as_array().at(0).find("runs")->as_array().at(0);
  EXPECT_EQ(run.as_array().at(3), Json(2 * 29.9));
}

TEST(PageData, NamesTheExpectedBest) {
  RunView view = view_in_the_middle();
  EXPECT_TRUE(page_data(view).find("study")->find("expectedBest")->is_null());
  view.expected_best = ExpectedBest{0.89, 0.02, api::BestTrial{}};
  view.expected_best->luckier->trial = "digits-1";
  EXPECT_EQ(page_data(view).find("study")->find("expectedBest")->dump(),
            R"({"expected":0.89,"noise":0.02,"luckier":"digits-1"})");
}

TEST(PageData, HasCostsOfTrialsIfCostsCount) {
  RunView view = view_in_the_middle();
  EXPECT_TRUE(page_data(view).find("study")->find("costUnit")->is_null());
  view.study.spec.algorithm.cost_aware = true;
  api::Trial paid = *view.trials[0];
  ASSERT_FALSE(paid.status.facts.empty());
  paid.status.facts.back().cost = 29.9;
  view.trials[0] = std::make_shared<const api::Trial>(paid);
  const Json data = page_data(view);
  EXPECT_EQ(*data.find("study")->find("costUnit"), Json("worker-seconds"));
  EXPECT_EQ(*data.find("trials")->as_array().at(0).find("cost"), Json(29.9));
  EXPECT_EQ(data.find("trials")->as_array().at(1).find("cost"), nullptr);
}

TEST(PageData, HasTheGpuUseOfATrial) {
  RunView view = view_in_the_middle();
  auto trial = std::make_shared<api::Trial>(*view.trials[0]);
  trial->status.report->metrics["mfu"] = 0.41;
  trial->status.report->metrics["gpu_power_watts"] = 612;
  view.trials[0] = trial;
  const Json data = page_data(view);
  const auto& trials = data.find("trials")->as_array();
  EXPECT_EQ(trials[0].find("device")->dump(), R"({"mfu":0.41,"gpu_power_watts":612})");
  EXPECT_EQ(trials[1].find("device")->dump(), "{}");
}

TEST(PageData, SaysWhyThereIsNoImportanceYet) {
  RunView view = view_in_the_middle();
  view.trials.clear();
  const Json data = page_data(view);
  const Json& insight = data.find("insights")->as_array().at(0);
  EXPECT_THAT(insight.find("why")->as_string(), HasSubstr("0 trials have a value"));
  EXPECT_FALSE(render_page("empty", data).empty());
}

}  // namespace
}  // namespace fettle::cli
