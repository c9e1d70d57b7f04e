// Studies of `fettle suggest --study`: they answer as others do, and outlive their session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/common/asked.h"
#include "cli/suggest/suggest.h"
#include "cli/testing/test_suggest.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/store/sqlite_store.h"

namespace fettle::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kSpace[] =
    R"("space":[{"name":"x","type":"float","low":0,"high":1},{"name":"n","type":"int","low":1,)"
    R"("high":9}])";

std::string study(const std::string& more = "") {
  return R"({"study":{"seed":5,)" + more + kSpace + "},\"ack\":true}\n";
}

std::string report(int id, int step, double value) {
  return Json::object({{"report", Json::object({{"id", id}, {"step", step}, {"value", value}})}})
             .dump() +
         "\n";
}

std::string tell(int id, double value) {
  return Json::object({{"tell", Json::object({{"id", id}, {"value", value}})}}).dump() + "\n";
}

// The parameters of a trial in the reply to an ask.
std::string params_of(const std::string& reply, std::size_t trial) {
  const Json asked = *parse_json(reply);
  return asked.find("trials")->as_array()[trial].find("params")->dump();
}

class SuggestStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "suggest_store_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // The replies of one process to these lines.
  std::vector<std::string> life(const std::string& input, const std::string& name = "s") {
    std::istringstream in(input);
    std::ostringstream out;
    EXPECT_EQ(run_suggest(in, out, SuggestPlace{root_, name}), 0);
    std::vector<std::string> replies;
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) replies.push_back(line);
    return replies;
  }

  std::unique_ptr<local::SqliteStore> store(const std::string& name = "s") {
    const local::Layout layout = local::make_layout(root_, name);
    return std::move(
               local::SqliteStore::open(layout.database(), local::SqliteStore::Mode::kReadWrite))
        .value();
  }

  std::string root_;
};

TEST_F(SuggestStoreTest, AnswersAsWithoutAStore) {
  const std::vector<std::string> heads = {
      R"("max_trials":9,)",
      R"("algorithm":{"name":"gp","cost_aware":true},"max_cost":20,)",
      R"("resource":{"min":1,"max":9},"max_trials":6,)",
      R"("resource":{"min":1,"max":9},"early_stopping":{"name":"asha"},"first":[{"n":4}],)",
      R"("resource":{"min":1,"max":6},"max_trials":4,"algorithm":{"name":"pbt","interval":2},)",
      R"("known":[{"params":{"x":0.5,"n":3},"value":1}],"constraints":[{"metric":"m","max":2}],)"};
  for (std::size_t i = 0; i < heads.size(); ++i) {
    std::string lines = study(heads[i]) + "{\"ask\":4}\n";
    for (int id = 0; id < 3; ++id) lines += report(id, 2, id) + report(id, 3, 0.5 * id);
    lines += R"({"tell":{"id":3,"value":2,"cost":3,"metrics":{"m":1}}})"
             "\n";
    lines += "{\"ask\":3}\n{\"best\":true}\n{\"first\":[{\"x\":0.5}],\"ack\":true}\n{\"ask\":2}\n";
    EXPECT_EQ(life(lines, "s" + std::to_string(i)), replies_to(lines)) << heads[i];
  }
}

TEST_F(SuggestStoreTest, RunningTrialsComeAgain) {
  const auto before = life(study() + "{\"ask\":3}\n" + tell(1, 4));
  const auto after = life(study() + "{\"ask\":1}\n{\"ask\":2}\n{\"best\":true}\n" + tell(1, 4));
  EXPECT_EQ(after[0], R"({"ok":true,"trials":3})");
  const Json first = *parse_json(before[1]);
  const Json& trials = *first.find("trials");
  Json again = trials.as_array()[0];
  again.set("again", true);
  EXPECT_EQ(after[1], "{\"trials\":[" + again.dump() + "]}");
  EXPECT_THAT(after[2], HasSubstr(R"({"trials":[{"id":2,)"));
  EXPECT_THAT(after[2], HasSubstr(R"("again":true},{"id":3,)"));
  EXPECT_THAT(after[3], HasSubstr(R"({"best":{"id":1,)"));
  EXPECT_THAT(after[4], HasSubstr("trial 1 has ended already"));
}

TEST_F(SuggestStoreTest, PausedAndPromotedTrialsGoOn) {
  const std::string head = study(R"("resource":{"min":1,"max":9},"algorithm":{"name":"random"},)"
                                 R"("early_stopping":{"name":"asha","promote":true},)");
  const auto begun =
      life(head + "{\"ask\":3}\n" + report(0, 1, 0.5) + report(1, 1, 0.4) + report(2, 1, 0.6));
  const auto promoted = life(head + "{\"ask\":1}\n" + report(1, 2, 0.3));
  EXPECT_EQ(promoted[1],
            R"({"trials":[{"id":1,"params":)" + params_of(begun[1], 1) + R"(,"resume":true}]})");
  EXPECT_EQ(promoted[2], R"({"decision":"continue"})");
  const auto again = life(head + report(0, 2, 1) + "{\"ask\":1}\n" + report(1, 3, 0.3));
  EXPECT_THAT(again[1], HasSubstr("trial 0 is paused"));
  EXPECT_THAT(again[2], HasSubstr(R"("resume":true,"again":true}]})"));
  EXPECT_EQ(again[3], R"({"decision":"pause"})");
}

TEST_F(SuggestStoreTest, PointsAndResultsFromElsewhereStay) {
  const std::string head = study(R"("algorithm":{"name":"gp"},)");
  const std::string known = R"({"known":[{"params":{"x":0.125,"n":7},"value":-4}],"ack":true})"
                            "\n";
  const std::string first = R"({"first":[{"x":0.75,"n":2}],"ack":true})"
                            "\n";
  const auto whole =
      replies_to(head + "{\"ask\":1}\n" + tell(0, 1) + known + first + "{\"ask\":3}\n");
  life(head + "{\"ask\":1}\n" + tell(0, 1));
  life(head + known);
  life(head + first);
  EXPECT_EQ(life(head + "{\"ask\":3}\n")[1], whole.back());
  EXPECT_THAT(whole.back(), HasSubstr(R"({"id":1,"params":{"x":0.75,"n":2}})"));
}

TEST_F(SuggestStoreTest, ALastReportMayBeToldLater) {
  const std::string head = study(R"("resource":{"min":1,"max":4},"algorithm":{"name":"tpe"},)");
  life(head + "{\"ask\":2}\n" + report(0, 4, 2) + tell(1, 3));
  EXPECT_THAT(life(head + tell(0, 5) +
                   R"({"tell":{"id":0,"value":2},"ack":true})"
                   "\n" +
                   tell(1, 3)),
              ElementsAre(HasSubstr("\"trials\":2"), HasSubstr("trial 0 has ended already"),
                          R"({"ok":true})", HasSubstr("trial 1 has ended already")));
}

TEST_F(SuggestStoreTest, AnotherStudyLineIsRefused) {
  life(study(R"("max_trials":5,"known":[{"params":{"x":0.5,"n":3},"value":1}],)"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("max_trials":5,"direction":"maximize",)", "directions was"},
      {R"("max_trials":5,"algorithm":{"seed":6},)", "algorithm was"},
      {R"("max_trials":5,"resource":{"min":1,"max":2},)", "resource was"},
      {R"("max_trials":5,"early_stopping":{"name":"none"},)", "early_stopping was null"},
      {R"("max_trials":5,"constraints":[{"metric":"m","max":1}],)", "constraints was"},
      {R"("max_trials":5,"first":[{"n":1}],)", "first was null"},
      {R"("max_trials":5,"known":[{"params":{"x":0.5,"n":3},"value":2}],)", "known has other"},
      {R"("max_trials":5,"space":[],)", "space"},
  };
  for (const auto& [more, expected] : cases) {
    EXPECT_THAT(life(study(more))[0], HasSubstr(expected)) << more;
  }
  EXPECT_THAT(life(study(R"("max_trials":5,)"))[0], HasSubstr("\"ok\":true"));
}

TEST_F(SuggestStoreTest, AStudyThatHasEndedGoesOnWithMoreTrials) {
  life(study(R"("max_trials":2,)") + "{\"ask\":2}\n" + tell(0, 3) + tell(1, 2));
  const auto more = life(study(R"("max_trials":3,)") + "{\"ask\":2}\n");
  EXPECT_EQ(more[0], R"({"ok":true,"trials":2})");
  EXPECT_THAT(more[1], HasSubstr(R"({"trials":[{"id":2,)"));
  EXPECT_THAT(more[1], HasSubstr(R"(],"exhausted":true)"));
  const api::Study running = *store()->get_study({"", "s"});
  EXPECT_EQ(running.spec.budget.trials, 3);
  EXPECT_EQ(running.status.display.state, "Searching");
  ASSERT_EQ(running.status.search.size(), 2U);
  EXPECT_EQ(running.status.search[1].since, 2);
  EXPECT_EQ(running.status.search[1].basis, 2);
  EXPECT_EQ(running.status.search[1].trials, 3);
  life(study(R"("max_trials":3,)") + tell(2, 1));
  EXPECT_EQ(store()->get_study({"", "s"})->status.display.state, "Succeeded");
}

TEST_F(SuggestStoreTest, LimitsMayChange) {
  struct Case {
    std::string line;
    std::string second_ask;  // its reply has this
    std::int64_t stored_trials;
  };
  const std::vector<Case> cases = {
      {R"("max_trials":5,)", R"({"id":4,)", 5},
      {R"("max_trials":2,)", R"({"trials":[],"exhausted":true})", 2},
      {"", R"({"id":5,)", 1'000'000},
      {R"("max_trials":9,"parallel":3,)", R"({"id":5,)", 9},
      {R"("max_trials":9,"max_cost":4,)", R"({"trials":[],"exhausted":true})", 9},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "s" + std::to_string(i);
    std::string begun = study(R"("max_trials":3,)") + "{\"ask\":3}\n";
    for (int id = 0; id < 3; ++id) {
      begun += R"({"tell":{"cost":2,"value":1,"id":)" + std::to_string(id) + "}}\n";
    }
    life(begun, name);
    EXPECT_THAT(life(study(cases[i].line) + "{\"ask\":3}\n", name)[1],
                HasSubstr(cases[i].second_ask))
        << cases[i].line;
    EXPECT_EQ(store(name)->get_study({"", name})->spec.budget.trials, cases[i].stored_trials);
  }
}

// The process died after the budget was written, and before the search period was.
TEST_F(SuggestStoreTest, AChangeOfLimitsThatWasCutIsFinished) {
  life(study(R"("max_trials":1,)") + "{\"ask\":1}\n" + tell(0, 1));
  {
    const auto opened = store();
    api::Study study = *opened->get_study({"", "s"});
    study.spec.budget.trials = 2;
    ASSERT_TRUE(opened->update_study_spec(study).ok());
  }
  EXPECT_THAT(life(study(R"("max_trials":2,)") + "{\"ask\":1}\n")[1], HasSubstr(R"({"id":1,)"));
  EXPECT_EQ(store()->get_study({"", "s"})->status.search.back().trials, 2);
}

TEST_F(SuggestStoreTest, LimitsDoNotChangeWithoutEnd) {
  const auto line = [](std::size_t trials) {
    return study(R"("max_trials":)" + std::to_string(trials) + ",");
  };
  for (std::size_t i = 0; i < api::kMostSearchPeriods; ++i) {
    EXPECT_THAT(life(line(i + 1) + "{\"ask\":20}\n")[0], HasSubstr(R"("ok":true)"));
  }
  const auto refused = life(line(40) + "{\"hello\":2}\n");
  EXPECT_THAT(refused[0], HasSubstr("has had 16 changes of its limits, which is the most: "
                                    "max_trials was 16, now 40"));
  EXPECT_THAT(life(line(16))[0], HasSubstr(R"("trials":16)"));
}

// A session on another machine, or of another version, begins a period: replay knows both.
TEST_F(SuggestStoreTest, AnotherMachineBeginsAPeriod) {
  life(study() + "{\"ask\":1}\n" + tell(0, 1));
  {
    const auto opened = store();
    api::Study study = *opened->get_study({"", "s"});
    study.status.search.back().computed_by = "another machine";
    ASSERT_TRUE(opened->update_study_status(study).ok());
  }
  life(study() + "{\"ask\":1}\n");
  const std::vector<api::SearchPeriod> periods = store()->get_study({"", "s"})->status.search;
  ASSERT_EQ(periods.size(), 2U);
  EXPECT_EQ(periods[1].since, 1);
  EXPECT_EQ(periods[1].algorithm, periods[0].algorithm);
}

TEST_F(SuggestStoreTest, APopulationKeepsItsSize) {
  const auto line = [](int members) {
    return study(R"("resource":{"min":1,"max":6},"algorithm":{"name":"pbt","interval":2},)"
                 R"("max_trials":)" +
                 std::to_string(members) + ",");
  };
  life(line(4) + "{\"ask\":1}\n");
  EXPECT_THAT(life(line(5))[0], HasSubstr("max_trials was 4, now 5"));
}

TEST_F(SuggestStoreTest, AStudyThatCannotBeStoredIsRefused) {
  EXPECT_THAT(life(R"({"study":{"space":[{"name":"a b","type":"bool"}]}})"
                   "\n")[0],
              HasSubstr("study s cannot be stored: spec.parameters[0].name"));
  EXPECT_THAT(life(study(), "No_Name")[0], HasSubstr("metadata.name"));
  EXPECT_THAT(life(study(R"("algorithm":{"name":"pbt"},)"))[0], HasSubstr("algorithm pbt"));
  EXPECT_FALSE(std::filesystem::exists(root_));
}

TEST_F(SuggestStoreTest, ObjectivesAreStoredByName) {
  const std::string two = R"("directions":["minimize","maximize"],)";
  EXPECT_THAT(life(study(two + R"("objectives":["loss"],)"))[0],
              HasSubstr("objectives: give one name for each direction: expected 2, found 1"));
  EXPECT_THAT(life(study(two + R"("objectives":["loss","a b"],)"))[0],
              HasSubstr("spec.objectives[1].metric"));
  life(study(two + R"("objectives":["loss","accuracy"],)") + R"({"ask":1})"
                                                             "\n"
                                                             R"({"tell":{"id":0,"values":[1,2]}})"
                                                             "\n");
  const api::Study stored = store()->get_study({"", "s"}).value();
  EXPECT_EQ(stored.spec.objectives[1].metric, "accuracy");
  EXPECT_EQ(stored.status.best[0].objectives, (std::vector<double>{1, 2}));
  EXPECT_THAT(life(study(two))[0], HasSubstr("directions was"));
}

TEST_F(SuggestStoreTest, AStudyWithAProgramIsRefused) {
  life(study() + "{\"ask\":1}\n");
  {
    const auto opened = store();
    api::Study with_program = *opened->get_study({"", "s"});
    EXPECT_TRUE(is_asked(with_program.spec));
    with_program.spec.trial.pod_template =
        *parse_json(R"({"spec":{"containers":[{"name":"c","image":"i"}]}})");
    ASSERT_TRUE(opened->update_study_spec(with_program).ok());
  }
  EXPECT_THAT(life(study())[0], HasSubstr("study s runs a program: continue it with fettle run"));
}

// The process died after the status of a stopped trial was written, and before its stop was.
TEST_F(SuggestStoreTest, AStopThatWasCutIsFinished) {
  const std::string head =
      study(R"("resource":{"min":1,"max":9},"early_stopping":{"name":"asha"},)");
  life(head + "{\"ask\":2}\n" + report(0, 1, 1) + report(1, 1, 2));
  api::Trial trial;
  {
    const auto opened = store();
    trial = **opened->get_trial({"", "s-1"});
    ASSERT_TRUE(trial.spec.stop);
    api::Trial cut = trial;
    cut.spec.stop.reset();
    ASSERT_TRUE(opened->update_trial_spec(cut).ok());
  }
  life(head);
  EXPECT_EQ((*store()->get_trial({"", "s-1"}))->spec.stop, trial.spec.stop);
}

// It died after a promotion was decided, and before its run began.
TEST_F(SuggestStoreTest, APromotionThatWasCutIsFinished) {
  const std::string head = study(R"("resource":{"min":1,"max":9},"algorithm":{"name":"random"},)"
                                 R"("early_stopping":{"name":"asha","promote":true},)");
  life(head + "{\"ask\":3}\n" + report(0, 1, 0.5) + report(1, 1, 0.4) + report(2, 1, 0.6));
  {
    const auto opened = store();
    api::Trial trial = **opened->get_trial({"", "s-1"});
    trial.spec.until_step = 3;
    trial.spec.search.rung = 1;
    trial.spec.search.promotions.push_back({6, 3});
    ASSERT_TRUE(opened->update_trial_spec(trial).ok());
  }
  EXPECT_THAT(life(head + "{\"ask\":1}\n")[1], HasSubstr(R"("resume":true,"again":true}]})"));
  EXPECT_EQ((*store()->get_trial({"", "s-1"}))->status.runs.size(), 2U);
}

TEST_F(SuggestStoreTest, AStudyWithoutALimitHasNoTotal) {
  life(study() + "{\"ask\":2}\n" + tell(0, 3));
  const api::StudyStatus status = store()->get_study({"", "s"})->status;
  EXPECT_EQ(status.progress, "1");
  EXPECT_FALSE(status.eta_seconds);
}

TEST_F(SuggestStoreTest, TheStudyEndsWithItsLastTrial) {
  life(study(R"("max_trials":2,)") + "{\"ask\":2}\n" + tell(0, 3) + tell(1, 2));
  const api::Study ended = *store()->get_study({"", "s"});
  EXPECT_EQ(ended.status.display.state, "Succeeded");
  EXPECT_EQ(ended.status.trials.completed, 2);
  ASSERT_EQ(ended.status.best.size(), 1U);
  EXPECT_EQ(ended.status.best[0].trial, "s-1");
}

}  // namespace
}  // namespace fettle::cli
