#include "cli/suggest/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <istream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/testing/test_suggest.h"

namespace fettle::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns a study line with this space and these further members.
std::string study(const std::string& space, const std::string& more = "") {
  return R"({"study":{"name":"s","direction":"minimize","seed":1,"parallel":1,)" + more +
         R"("space":[)" + space + "]}}\n";
}

const char kFloat[] = R"({"name":"x","type":"float","low":0,"high":1,"log":false})";
const char kSmall[] = R"({"name":"n","type":"int","low":1,"high":4,"log":false})";

Json parsed(const std::string& line) {
  Result<Json> out = parse_json(line);
  EXPECT_TRUE(out.ok()) << line;
  return out.ok() ? std::move(out).value() : Json();
}

TEST(Suggest, AsksAndTells) {
  const std::string space = std::string(kFloat) +
                            R"(,{"name":"o","type":"categorical","choices":["sgd","adam"]},
      {"name":"m","type":"float","low":0.5,"high":0.9,"step":0.2,"when":{"param":"o","in":["sgd"]}},
      {"name":"w","type":"int","low":16,"high":1024,"log":true},{"name":"b","type":"bool"})";
  std::string one_line = study(space);
  std::erase(one_line, '\n');
  const auto replies = replies_to(
      one_line + "\n{\"ask\": 20}\n{\"tell\": {\"id\": 3, \"value\": 0.5}}\n{\"ask\": 1}\n");
  ASSERT_EQ(replies.size(), 2U);
  const Json answer = parsed(replies[0]);
  ASSERT_EQ(answer.find("trials")->as_array().size(), 20U);
  EXPECT_EQ(answer.find("exhausted"), nullptr);
  std::int64_t next_id = 0;
  for (const Json& trial : answer.find("trials")->as_array()) {
    EXPECT_EQ(trial.find("id")->as_integer(), next_id++);
    const Json& params = *trial.find("params");
    const bool sgd = params.find("o")->as_string() == "sgd";
    EXPECT_EQ(params.as_object().size(), sgd ? 5U : 4U);
    EXPECT_EQ(params.find("m") != nullptr, sgd);
    EXPECT_TRUE(params.find("w")->is_integer());
    EXPECT_TRUE(params.find("b")->is_boolean());
  }
  EXPECT_EQ(parsed(replies[1]).find("trials")->as_array()[0].find("id")->as_integer(), 20);
}

TEST(Suggest, EndsWithTheSpaceOrTheBudget) {
  EXPECT_THAT(replies_to(study(kSmall, R"("algorithm":{"name":"grid"},)") +
                         "{\"ask\":3}\n{\"ask\":3}\n{\"ask\":1}\n"),
              ElementsAre(R"({"trials":[{"id":0,"params":{"n":1}},{"id":1,"params":{"n":2}},)"
                          R"({"id":2,"params":{"n":3}}]})",
                          R"({"trials":[{"id":3,"params":{"n":4}}],"exhausted":true})",
                          R"({"trials":[],"exhausted":true})"));
  const auto replies =
      replies_to(study(kFloat, R"("max_trials":2,)") + "{\"ask\":2}\n{\"ask\":1}\n");
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(parsed(replies[0]).find("exhausted"), nullptr);
  EXPECT_EQ(replies[1], R"({"trials":[],"exhausted":true})");
}

TEST(Suggest, TheSameLinesGiveTheSameReplies) {
  for (const char* name : {"auto", "grid", "random", "sobol", "tpe", "gp"}) {
    const std::string head = study(std::string(kFloat) + "," + kSmall,
                                   std::string(R"("algorithm":{"name":")") + name + "\"},");
    std::string tells;
    for (int i = 0; i < 15; ++i) {
      tells +=
          "{\"tell\":{\"id\":" + std::to_string(i) + ",\"value\":" + std::to_string(i) + "}}\n";
    }
    const auto replies = replies_to(head + "{\"ask\":15}\n" + tells + "{\"ask\":2}\n");
    EXPECT_EQ(replies, replies_to(head + "{\"ask\":15}\n" + tells + "{\"ask\":2}\n")) << name;
    const auto singly = replies_to(head + "{\"ask\":15}\n" + tells + "{\"ask\":1}\n{\"ask\":1}\n");
    ASSERT_EQ(singly.size(), 3U) << name;
    const std::string two = replies[1].substr(0, replies[1].size() - 2);
    EXPECT_THAT(two, ::testing::StartsWith(singly[1].substr(0, singly[1].size() - 2))) << name;
    EXPECT_THAT(two, ::testing::EndsWith(singly[2].substr(11, singly[2].size() - 13))) << name;
  }
}

TEST(Suggest, InfeasibleIsNullOrNotFinite) {
  EXPECT_THAT(
      replies_to(study(kFloat) + "{\"ask\":4}\n" +
                 "{\"tell\":{\"id\":0,\"value\":null}}\n{\"tell\":{\"id\":1,\"value\":NaN}}\n"
                 "{\"tell\":{\"id\":2,\"value\":Infinity}}\n"
                 "{\"tell\":{\"id\":3,\"value\":-Infinity}}\n")
          .size(),
      1U);
}

TEST(Suggest, SeveralObjectives) {
  std::string head = study(kFloat);
  head.replace(head.find(R"("direction":"minimize")"), 22,
               R"("directions":["minimize","maximize"])");
  const auto replies = replies_to(
      head +
      "{\"ask\":3}\n{\"tell\":{\"id\":0,\"values\":[1,2]}}\n"
      "{\"tell\":{\"id\":1,\"values\":[1]}}\n{\"tell\":{\"id\":1,\"value\":1}}\n"
      "{\"tell\":{\"id\":1,\"values\":[1,null]}}\n{\"tell\":{\"id\":2,\"value\":null}}\n");
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_THAT(replies[1], HasSubstr("there are 2 objectives"));
  EXPECT_THAT(replies[2], HasSubstr("there are 2 objectives"));
}

TEST(Suggest, ReportsAreJudged) {
  const std::string head =
      study(kFloat, R"("resource":{"min":1,"max":9},"early_stopping":{"name":"asha"},)");
  const auto report = [](int id, int step, const char* value) {
    return "{\"report\":{\"id\":" + std::to_string(id) + ",\"step\":" + std::to_string(step) +
           ",\"value\":" + value + "}}\n";
  };
  EXPECT_THAT(
      replies_to(head + "{\"ask\":3}\n" + report(0, 1, "0.5") + report(0, 2, "9") +
                 report(1, 1, "0.6") + report(1, 2, "0.1") + report(0, 9, "0.2") +
                 report(0, 9, "0.2")),
      ElementsAre(HasSubstr("trials"), R"({"decision":"continue"})", R"({"decision":"continue"})",
                  R"({"decision":"stop"})", HasSubstr("trial 1 has ended already"),
                  R"({"decision":"continue"})", HasSubstr("trial 0 has ended already")));
}

TEST(Suggest, AReportPastARungStandsForItOnce) {
  const std::string head =
      study(kFloat, R"("resource":{"min":1,"max":9},"early_stopping":{"name":"asha"},)");
  EXPECT_THAT(replies_to(head + "{\"ask\":2}\n"
                                "{\"report\":{\"id\":0,\"step\":2,\"value\":0.5}}\n"
                                "{\"report\":{\"id\":0,\"step\":1,\"value\":0.9}}\n"
                                "{\"report\":{\"id\":1,\"step\":2,\"value\":0.6}}\n"),
              ElementsAre(HasSubstr("trials"), R"({"decision":"continue"})",
                          R"({"decision":"continue"})", R"({"decision":"stop"})"));
}

TEST(Suggest, TheSameReportTwiceCountsOnce) {
  // Trial 0 has 4 at step 1 and 0 at step 2: an average of 2. Step 1 again would make it 2.67.
  const std::string head = study(
      kFloat, R"("resource":{"min":1,"max":9},"early_stopping":{"name":"median","min_trials":1},)");
  const auto report = [](int id, int step, const char* value) {
    return "{\"report\":{\"id\":" + std::to_string(id) + ",\"step\":" + std::to_string(step) +
           ",\"value\":" + value + "}}\n";
  };
  const auto replies = replies_to(head + "{\"ask\":2}\n" + report(0, 1, "4") + report(0, 1, "4") +
                                  report(0, 2, "0") + report(1, 1, "3") + report(1, 2, "2.5"));
  EXPECT_EQ(replies.back(), R"({"decision":"stop"})");
}

std::string report(int id, int step, double value) {
  return Json::object({{"report", Json::object({{"id", id}, {"step", step}, {"value", value}})}})
             .dump() +
         "\n";
}

TEST(Suggest, TrialsPauseAtRungsAndTheBestAreResumed) {
  const std::string head =
      study(kFloat, R"("resource":{"min":1,"max":9},"algorithm":{"name":"random"},)"
                    R"("early_stopping":{"name":"asha","promote":true},)");
  EXPECT_THAT(
      replies_to(head + "{\"ask\":3}\n" + report(0, 1, 0.5) + report(1, 1, 0.4) +
                 report(1, 2, 0.4) + report(2, 1, 0.6) + "{\"ask\":2}\n" + report(1, 2, 0.3) +
                 report(1, 3, 0.3)),
      ElementsAre(HasSubstr("\"id\":2"), R"({"decision":"pause"})", R"({"decision":"pause"})",
                  HasSubstr("trial 1 is paused until an ask resumes it"), R"({"decision":"pause"})",
                  ::testing::AllOf(HasSubstr(R"({"trials":[{"id":1,"resume":true},{"id":3,)"),
                                   ::testing::Not(HasSubstr("exhausted"))),
                  R"({"decision":"continue"})", R"({"decision":"pause"})"));
}

TEST(Suggest, AResourceLetsAutoPauseTrials) {
  const auto first = [](const std::string& more) {
    return replies_to(study(kFloat, more) + "{\"ask\":1}\n" + report(0, 1, 0.5)).back();
  };
  EXPECT_EQ(first(R"("resource":{"min":1,"max":9},)"), R"({"decision":"pause"})");
  EXPECT_EQ(first(R"("resource":{"min":1,"max":9},"algorithm":{"name":"tpe"},)"),
            R"({"decision":"continue"})");
  EXPECT_EQ(first(R"("resource":{"min":1,"max":9},"early_stopping":{"name":"asha"},)"),
            R"({"decision":"continue"})");
}

// One trial at a time: finally, one reaches the last step, and then the search is over.
TEST(Suggest, WithABudgetTheBestIsResumedToTheEnd) {
  const std::string head = study(
      kFloat, R"("max_trials":2,"resource":{"min":1,"max":9},"algorithm":{"name":"hyperband"},)");
  EXPECT_THAT(replies_to(head + "{\"ask\":2}\n" + report(0, 1, 0.5) + "{\"ask\":1}\n" +
                         report(1, 1, 0.6) + "{\"ask\":2}\n" + report(0, 3, 0.4) + "{\"ask\":1}\n" +
                         report(0, 9, 0.3) + "{\"ask\":1}\n"),
              ElementsAre(HasSubstr("\"id\":1"), R"({"decision":"pause"})", R"({"trials":[]})",
                          R"({"decision":"pause"})", R"({"trials":[{"id":0,"resume":true}]})",
                          R"({"decision":"pause"})", R"({"trials":[{"id":0,"resume":true}]})",
                          R"({"decision":"continue"})", R"({"trials":[],"exhausted":true})"));
}

// Two members, intervals of 2 steps: the worse one is replaced by a copy of the better one.
TEST(Suggest, APopulationTakesOverFromItsBest) {
  const std::string head =
      study(kFloat, R"("max_trials":2,"resource":{"min":1,"max":6},)"
                    R"("algorithm":{"name":"pbt","interval":2,"quantile":0.5},)");
  const auto replies =
      replies_to(head + "{\"ask\":2}\n" + report(0, 2, 0.5) + report(1, 2, 0.1) + "{\"ask\":2}\n" +
                 report(0, 3, 0.5) + report(2, 3, 0.3) + report(2, 4, 0.2) +
                 R"({"tell":{"id":1,"value":null}})" + "\n" + "{\"ask\":2}\n");
  ASSERT_EQ(replies.size(), 8U);
  EXPECT_EQ(replies[2], R"({"decision":"pause"})");
  EXPECT_THAT(replies[3], HasSubstr(R"({"trials":[{"id":1,"resume":true},{"id":2,"params":)"));
  EXPECT_THAT(replies[3], HasSubstr(R"("parent":{"id":1,"step":2}})"));
  EXPECT_THAT(replies[4], HasSubstr("trial 0 has ended already"));
  EXPECT_EQ(replies[5], R"({"decision":"continue"})");
  EXPECT_EQ(replies[6], R"({"decision":"pause"})");
  // Trial 1 failed on its way to step 4: in its place another one begins at the same start.
  EXPECT_THAT(replies[7], HasSubstr(R"("parent":{"id":0,"step":2}})"));
}

TEST(Suggest, APausedTrialMayBeToldItsResult) {
  const std::string head =
      study(kFloat, R"("resource":{"min":1,"max":9},"algorithm":{"name":"bohb"},)");
  EXPECT_THAT(replies_to(head + "{\"ask\":1}\n" + report(0, 1, 0.5) +
                         "{\"tell\":{\"id\":0,\"value\":0.1}}\n" + report(0, 3, 0.4)),
              ElementsAre(HasSubstr("trials"), R"({"decision":"pause"})",
                          HasSubstr("trial 0 has ended already")));
}

// Equivalent to a value that is not a number.
TEST(Suggest, AValueBeyondADoubleIsInfeasible) {
  for (const std::string value : {"1e309", "-1e309", "NaN", "null"}) {
    const auto replies =
        replies_to(study(kFloat) + "{\"ask\":1}\n{\"tell\":{\"id\":0,\"value\":" + value +
                   "}}\n{\"ask\":1}\n");
    ASSERT_EQ(replies.size(), 2u) << value;
    EXPECT_THAT(replies.back(), HasSubstr("\"id\":1")) << value;
  }
}

TEST(Suggest, ABadLineIsNamedAndPassedOver) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"garbage", "expected a JSON value"},
      {"[1]", "an object with one member"},
      {"{}", "an object with one member"},
      {R"({"ask":1,"tell":{}})", "an object with one member"},
      {R"({"aks":1})", "there is no request \"aks\""},
      {R"({"ask":0})", "ask must be a whole number from 1 to 1000000; found 0"},
      {R"({"ask":-1})", "found -1"},
      {R"({"ask":1.5})", "found 1.5"},
      {R"({"ask":"1"})", "found \"1\""},
      {R"({"ask":1e7})", "found 10000000"},
      {R"({"ask":NaN})", "ask must be a whole number"},
      {R"({"tell":{"id":9,"value":1}})", "there is no trial 9; 2 were asked for"},
      {R"({"tell":{"id":-1,"value":1}})", "there is no trial -1"},
      {R"({"tell":{"id":"a","value":1}})", "there is no trial \"a\""},
      {R"({"tell":{"value":1}})", "needs the id"},
      {R"({"tell":3})", "needs the id"},
      {R"({"tell":{"id":0,"value":1}})", "trial 0 has ended already"},
      {R"({"tell":{"id":1}})", "give either value or"},
      {R"({"tell":{"id":1,"value":1,"values":[1]}})", "give either value or"},
      {R"({"tell":{"id":1,"value":"low"}})", "a value must be a number or null; found string"},
      {R"({"tell":{"id":1,"values":3}})", "there are 1 objectives"},
      {R"({"report":{"id":1,"value":3}})", "report needs a step"},
      {R"({"study":{}})", "there is a study already"},
      {std::string(17 << 20, ' '), "longer than 16777216 bytes"},
      {std::string(1000, '['), "column 66: nested"},
  };
  std::string input = study(kFloat) + "{\"ask\":2}\n{\"tell\":{\"id\":0,\"value\":1}}\n";
  for (const auto& [line, expected] : cases) input += line + "\n";
  const auto replies = replies_to(input + "\n\n{\"ask\":1}");  // the last line has no end
  ASSERT_EQ(replies.size(), cases.size() + 2);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json reply = parsed(replies[i + 1]);
    ASSERT_NE(reply.find("error"), nullptr) << replies[i + 1];
    EXPECT_THAT(reply.find("error")->as_string(), HasSubstr(cases[i].second));
    EXPECT_EQ(reply.find("line")->as_integer(), static_cast<std::int64_t>(i) + 4);
  }
  EXPECT_THAT(replies.back(), HasSubstr("\"id\":2"));
}

using BadStudies = std::vector<std::pair<std::string, std::string>>;  // line, part of the answer

// Expects an error for each line, and acceptance of the study after them.
void expect_errors(const BadStudies& cases) {
  std::string input;
  for (const auto& [line, expected] : cases) input += line;
  const auto replies = replies_to(input + study(kFloat) + "{\"ask\":1}\n");
  ASSERT_EQ(replies.size(), cases.size() + 1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_THAT(parsed(replies[i]).find("error")->as_string(), HasSubstr(cases[i].second));
    EXPECT_EQ(parsed(replies[i]).find("line")->as_integer(), static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_THAT(replies.back(), HasSubstr("\"trials\""));
}

TEST(Suggest, ABadStudyIsExplainedAndMayBeGivenAgain) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"ask\":1}\n", "ask before a study"},
      {"{\"tell\":{\"id\":0,\"value\":1}}\n", "tell before a study"},
      {"{\"study\":3}\n", "study must be an object; found 3"},
      {"{\"study\":{}}\n", "space: is missing"},
      {study(""), "space: found 0 entries"},
      {study("3"), "space[0]: found 3, expected a map of fields"},
      {study("{}"), "space[0].name: is missing"},
      {study(R"({"name":"x"})"), "space[0].type: is missing"},
      {study(R"({"name":"x","type":"double"})"), "expected float, int, categorical or bool"},
      {study(R"({"name":"x","type":"float","low":0})"), "space[0].high: is missing"},
      {study(R"({"name":"x","type":"float","low":"0","high":1})"),
       R"(space[0].low: found "0", expected a finite number)"},
      {study(R"({"name":"x","type":"float","low":0,"high":1,"setp":1})"), "did you mean step?"},
      {study(R"({"name":"x","type":"float","low":0,"high":1,"log":1})"),
       "space[0].log: found 1, expected true or false"},
      {study(R"({"name":"x","type":"float","low":0,"high":NaN})"),
       "space[0].high: found NaN (not a number), expected a finite number"},
      {study(R"({"name":"x","type":"float","low":2,"high":1})"), "above the upper bound"},
      {study(R"({"name":"x","type":"float","low":0,"high":1,"log":true})"), "above 0; found 0"},
      {study(R"({"name":"x","type":"categorical"})"), "space[0].choices: is missing"},
      {study(R"({"name":"x","type":"categorical","choices":[]})"), "no values to choose from"},
      {study(R"({"name":"x","type":"bool","when":{"param":"y","in":[1]}})"), "condition is on"},
      {study(R"({"name":"x","type":"bool","when":{"param":"y"}})"), "space[0].when.in: is missing"},
      {study(kFloat, R"("algorithm":{"name":"gpp"},)"), "did you mean gp?"},
      {study(kFloat, R"("algorithm":{"name":"tpe","candidate":3},)"), "did you mean candidates?"},
      {study(kFloat, R"("algorithm":3,)"), "algorithm: found 3, expected a map of fields"},
      {study(kFloat, R"("max_trials":-1,)"),
       "max_trials: found -1, expected a whole number from 0"},
      {study(kFloat, R"("max_trials":1.5,)"), "found 1.5"},
      {study(kFloat, R"("directions":[],)"), "not both"},
      {study(kFloat, R"("early_stopping":{"name":"hyper"},)"), "expected asha, median"},
      {study(kFloat, R"("early_stopping":{"name":"asha","reduction_factor":1},)"), "above 1"},
      {study(kFloat, R"("early_stopping":{"name":"threshold"},)"),
       "early_stopping.threshold: is missing"},
      {study(kFloat, R"("early_stopping":{"name":"curve","probability":0},)"), "above 0"},
      {study(kFloat, R"("resource":{"max":9},"algorithm":{"name":"pbt"},)"),
       "needs max_trials of at least 2: it is the population"},
      {study(kFloat, R"("algorithm":{"name":"pbt","resample_probability":2},)"), "from 0 to 1"},
      {study(kFloat, R"("algorithm":{"name":"bohb"},)"), "give a resource with max above min"},
      {study(
           kFloat,
           R"("algorithm":{"name":"bohb"},"resource":{"max":9},"early_stopping":{"name":"asha"},)"),
       "itself decides which trials continue; leave early_stopping out"},
      {study(std::string(kFloat) + "," + kFloat), "declared twice"},
  };
  expect_errors(cases);
}

TEST(Suggest, KeepsToTheBoundsOfAStudy) {
  const BadStudies cases = {
      {study(kFloat, R"("early_stopping":{"name":"percentile","percentile":101},)"), "at most 100"},
      {study(kFloat, R"("early_stopping":{"name":"asha","reduction_factor":1001},)"),
       "early_stopping.reduction_factor: found 1001, expected a number above 1 and at most 1000"},
      {study(kFloat, R"("early_stopping":{"name":"curve","probability":2},)"), "at most 1"},
      {study(kFloat, R"("algorithm":{"name":"pbt","quantile":0.6},)"),
       "algorithm.quantile: found 0.6, expected a number above 0 and at most 0.5"},
      {study(kFloat, R"("algorithm":{"name":"cmaes","population_size":3},)"),
       "algorithm.population_size: found 3, expected a whole number from 4 to 1000"},
      {study(kFloat, R"("algorithm":{"name":"gp","quantile":0.2},)"),
       "algorithm.quantile: only makes sense with name: pbt or pb2; remove it"},
      {study(kFloat, R"("algorithm":{"name":"grid","points":1},)"), "algorithm.points: found 1"},
      {study(kFloat, R"("resource":{"min":3,"max":2},)"), "resource.max: found 2"},
      {study(R"({"name":"x","type":"bool","low":0})"), "only makes sense with type float or int"},
  };
  expect_errors(cases);
}

TEST(Suggest, SettingsOfAStudyAreTakenUnderTheirNameWithUnderscores) {
  const auto replies =
      replies_to(study(kFloat, R"("algorithm":{"name":"nsga2","population_size":8},"later":1,)") +
                 "{\"ask\":1}\n");
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_THAT(replies[0], HasSubstr("\"trials\""));
}

// Behaves like an unreadable file, such as a directory.
class BrokenInput : public std::streambuf {
  int_type underflow() override { throw std::ios_base::failure("broken"); }
};

TEST(Suggest, EndsWhereItsInputCannotBeRead) {
  BrokenInput broken;
  std::istream in(&broken);
  std::ostringstream out;
  EXPECT_EQ(run_suggest(in, out), 3);
  EXPECT_EQ(out.str(), "");
}

TEST(Suggest, ALineMayHaveSixteenMiB) {
  constexpr std::size_t kMost = 16 << 20;
  EXPECT_THAT(replies_to(std::string(kMost, ' ') + "\n" + std::string(kMost, ' ')), IsEmpty());
  EXPECT_THAT(replies_to(std::string(kMost + 1, ' ') + "\n"),
              ElementsAre(HasSubstr("longer than 16777216 bytes")));
}

TEST(Suggest, NoInputNoOutput) { EXPECT_THAT(replies_to(""), IsEmpty()); }

TEST(Suggest, AnyTextIsAParameterOrChoice) {
  const std::string name = R"("a\"b\n$(x); rm -rf {{}}")";
  const auto replies = replies_to(
      study("{\"name\":" + name + ",\"type\":\"categorical\",\"choices\":[" + name + "]}") +
      "{\"ask\":1}\n");
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(parsed(replies[0]).find("trials")->as_array()[0].find("params")->dump(),
            "{" + name + ":" + name + "}");
}

TEST(Suggest, TenThousandParametersAreFine) {
  std::string space;
  for (int i = 0; i < 10000; ++i) {
    space += (i > 0 ? "," : "") + ("{\"name\":\"p" + std::to_string(i)) +
             R"(","type":"float","low":0,"high":1})";
  }
  const auto replies = replies_to(study(space) + "{\"ask\":2}\n");
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(parsed(replies[0]).find("trials")->as_array()[1].find("params")->as_object().size(),
            10000U);
}

}  // namespace
}  // namespace fettle::cli
