// Unreasonable searches, requested of each algorithm through `fettle suggest`: it answers with
// valid points or with a sentence, and continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "base/json.h"
#include "cli/suggest/suggest_study.h"
#include "cli/testing/test_suggest.h"
#include "search/testing/problems.h"

namespace fettle::cli {
namespace {

using ::testing::HasSubstr;

constexpr int kTrials = 24;  // more than any algorithm starts with

std::vector<Json> serve(const std::string& input) {
  std::vector<Json> replies;
  for (const std::string& line : replies_to(input)) {
    Result<Json> reply = parse_json(line);
    EXPECT_TRUE(reply.ok()) << line.substr(0, 200);
    replies.push_back(reply.ok() ? std::move(reply).value() : Json());
  }
  return replies;
}

std::string study(const std::string& algorithm, const std::string& space,
                  const std::string& more = "") {
  const std::string points = algorithm == "grid" ? R"(","points":30)" : "\"";  // enough to go on
  const api::AlgorithmKind kind = *api::from_string<api::AlgorithmKind>(algorithm);
  const std::string steps =
      api::pauses_trials(kind) ? R"("resource":{"min":1,"max":9},)" : std::string();
  const bool needs_members =
      api::traits(kind).population && more.find("max_trials") == std::string::npos;
  const std::string members =
      needs_members ? "\"max_trials\":" + std::to_string(kTrials + 3) + "," : "";
  return R"({"study":{"seed":3,"algorithm":{"name":")" + algorithm + points + "}," + steps +
         members + more + R"("space":[)" + space + "]}}\n";
}

std::string ask(std::int64_t count) { return "{\"ask\":" + std::to_string(count) + "}\n"; }

std::string tell(std::int64_t trial, const std::string& value) {
  return "{\"tell\":{\"id\":" + std::to_string(trial) + ",\"value\":" + value + "}}\n";
}

std::vector<api::Parameter> parameters_of(const std::string& study_line) {
  const Json message = parse_json(study_line).value();
  return read_suggest_study(*message.find("study")).value().parameters;
}

std::string many_parameters(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += (i > 0 ? "," : "") + ("{\"name\":\"p" + std::to_string(i)) +
           R"(","type":"float","low":0,"high":1})";
  }
  return out;
}

std::string many_choices(int count) {
  std::string out = R"({"name":"c","type":"categorical","choices":[)";
  for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + std::to_string(i);
  return out + "]}";
}

struct Hard {
  std::string name;
  std::string space;
  std::function<std::string(int)> value;  // of trial i
};

std::vector<Hard> hard_ones() {
  const std::string plain = R"({"name":"x","type":"float","low":0,"high":1},)"
                            R"({"name":"c","type":"categorical","choices":["a","b"]})";
  const auto number = [](int i) { return std::to_string(i % 7) + ".5"; };
  const std::string wide = R"({"name":"x","type":"float","low":1e-15,"high":1e15,"log":true},)"
                           R"({"name":"y","type":"float","low":-1e300,"high":1e300},)"
                           R"({"name":"n","type":"int","low":1,"high":1e15,"log":true})";
  const std::string one = R"({"name":"x","type":"float","low":2,"high":2},)"
                          R"({"name":"n","type":"int","low":5,"high":5},)"
                          R"({"name":"c","type":"categorical","choices":["a"]},)"
                          R"({"name":"r","type":"float","low":1e-3,"high":1e-3,"log":true},)"
                          R"({"name":"y","type":"float","low":0,"high":1})";
  return {
      {"OnePointRanges", one, number},
      {"ThirtyDecades", wide, number},
      {"FiveHundredParameters", many_parameters(500), number},
      {"TenThousandChoices", many_choices(10'000), number},
      {"HugeValues", plain, [](int i) { return std::string(i % 2 > 0 ? "1e300" : "-1e300"); }},
      {"Outliers", plain, [](int i) { return std::string(i % 5 > 0 ? "0.25" : "1e12"); }},
      {"AllEqual", plain, [](int) { return std::string("1"); }},
      {"AllInfeasible", plain, [](int i) { return std::string(i % 2 > 0 ? "null" : "NaN"); }},
      {"NothingEverComes", plain, [](int) { return std::string(); }},
  };
}

using Case = std::tuple<std::string, std::size_t>;  // an algorithm, and which of the hard ones

std::string case_name(const ::testing::TestParamInfo<Case>& test) {
  return std::get<0>(test.param) + hard_ones()[std::get<1>(test.param)].name;
}

class HardForEveryAlgorithm : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Search, HardForEveryAlgorithm,
    ::testing::Combine(::testing::ValuesIn(search::testing::searching_samplers()),
                       ::testing::Range(std::size_t{0}, hard_ones().size())),
    case_name);

TEST_P(HardForEveryAlgorithm, GetsValidPoints) {
  const auto& [algorithm, index] = GetParam();
  const Hard hard = hard_ones()[index];
  const std::string head = study(algorithm, hard.space);
  std::string input = head;
  for (int i = 0; i < kTrials; ++i) {
    input += ask(1);
    const std::string value = hard.value(i);
    if (!value.empty()) input += tell(i, value);
  }
  const std::vector<Json> replies = serve(input + ask(3));
  ASSERT_EQ(replies.size(), static_cast<std::size_t>(kTrials) + 1);
  const std::vector<api::Parameter> parameters = parameters_of(head);
  std::size_t points = 0;
  for (const Json& reply : replies) {
    ASSERT_NE(reply.find("trials"), nullptr) << reply.dump().substr(0, 200);
    for (const Json& trial : reply.find("trials")->as_array()) {
      ASSERT_EQ(search::testing::complaint(parameters, *trial.find("params")), "");
      ++points;
    }
  }
  EXPECT_EQ(points, static_cast<std::size_t>(kTrials) + 3);
}

class BadLinesForEveryAlgorithm : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Search, BadLinesForEveryAlgorithm,
                         ::testing::ValuesIn(search::testing::searching_samplers()),
                         [](const auto& test) { return test.param; });

TEST_P(BadLinesForEveryAlgorithm, AreAnsweredAndPassedOver) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {tell(0, "1"), "there is no trial 0; 0 were asked for so far"},
      {ask(0), "ask must be a whole number from 1 to 1000000; found 0"},
      {ask(1'000'001), "found 1000001"},
      {ask(2), ""},
      {tell(0, "1"), ""},
      {tell(0, "2"), "trial 0 has ended already"},
      {tell(2, "1"), "there is no trial 2; 2 were asked for so far"},
      {tell(-1, "1"), "there is no trial -1"},
      {tell(1, "\"low\""), "must be a number or null"},
      {ask(1), ""},
  };
  std::string input = study(GetParam(), many_choices(100));
  std::vector<std::string> expected;
  for (const auto& [line, error] : cases) {
    input += line;
    if (!error.empty() || line.starts_with("{\"ask\"")) expected.push_back(error);
  }
  const std::vector<Json> replies = serve(input);
  ASSERT_EQ(replies.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Json* error = replies[i].find("error");
    ASSERT_EQ(error != nullptr, !expected[i].empty()) << replies[i].dump();
    if (error != nullptr) {
      EXPECT_THAT(error->as_string(), HasSubstr(expected[i]));
    }
  }
}

TEST_P(BadLinesForEveryAlgorithm, TheBudgetEnds) {
  const std::vector<Json> replies =
      serve(study(GetParam(), many_choices(100), R"("max_trials":5,)") + ask(3) + ask(1'000'000) +
            ask(1) + tell(4, "1") + tell(5, "1"));
  ASSERT_EQ(replies.size(), 4U);
  std::set<std::string> points;
  for (std::size_t i = 0; i < 3; ++i) {
    // Trials that may pause may also continue: as long as some are pending, there is more to come.
    const bool is_over =
        i > 0 && !api::pauses_trials(*api::from_string<api::AlgorithmKind>(GetParam()));
    EXPECT_EQ(replies[i].find("exhausted") != nullptr, is_over);
    for (const Json& trial : replies[i].find("trials")->as_array()) {
      points.insert(trial.find("params")->dump());
    }
  }
  EXPECT_EQ(points.size(), 5U);
  EXPECT_TRUE(replies[2].find("trials")->as_array().empty());
  EXPECT_THAT(replies[3].find("error")->as_string(), HasSubstr("there is no trial 5"));
}

TEST(AskForAMillion, IsAnswered) {
  for (const char* algorithm : {"random", "sobol", "tpe"}) {
    std::string input = study(algorithm, R"({"name":"x","type":"float","low":0,"high":1})");
    input += ask(12);
    for (int i = 0; i < 12; ++i) input += tell(i, std::to_string(i));
    const std::vector<std::string> replies = replies_to(input + ask(1'000'000));
    ASSERT_EQ(replies.size(), 2U) << algorithm;
    EXPECT_THAT(replies[1], ::testing::EndsWith("}}]}"));
    EXPECT_EQ(std::ranges::count(replies[1], '{'), 2'000'001) << algorithm;
  }
}

// ---- What trials cost --------------------------------------------------------------------------

const char kLine[] = R"({"name":"x","type":"float","low":0,"high":1})";

std::string counting_study(const std::string& algorithm, const std::string& more = "") {
  return R"({"study":{"algorithm":{"name":")" + algorithm + R"(","cost_aware":true},)" + more +
         R"("space":[)" + kLine + "]}}\n";
}

TEST(SuggestCosts, ACostThatIsNoneIsNamed) {
  for (const std::string cost : {"-1", "NaN", "Infinity", "\"cheap\"", "[1]"}) {
    const auto replies =
        serve(counting_study("gp") + ask(1) + R"({"tell":{"id":0,"value":1,"cost":)" + cost +
              "}}\n" + tell(0, "1"));
    ASSERT_EQ(replies.size(), 2U) << cost << ": the trial had not ended";
    const std::string error = replies[1].find("error")->as_string();
    EXPECT_THAT(error, HasSubstr("cost must be a number of at least 0")) << cost;
    EXPECT_THAT(error, HasSubstr("found " + cost));
  }
}

TEST(SuggestCosts, ACostMayBeMissingAndIsPassedOverWhereItDoesNotCount) {
  const std::string tells = R"({"tell":{"id":0,"value":1}})"
                            "\n"
                            R"({"tell":{"id":1,"value":2,"cost":null}})"
                            "\n"
                            R"({"tell":{"id":2,"value":null,"cost":12.5}})"
                            "\n";
  EXPECT_EQ(serve(counting_study("gp") + ask(3) + tells + ask(1)).size(), 2U);
  EXPECT_EQ(serve(study("tpe", kLine) + ask(3) + tells + ask(1)).size(), 2U);
}

TEST(SuggestCosts, NewTrialsEndWithTheBudget) {
  const auto tell_cost = [](int id, const char* cost) {
    return R"({"tell":{"id":)" + std::to_string(id) + R"(,"value":1,"cost":)" + cost + "}}\n";
  };
  const auto replies = serve(counting_study("gp", R"("max_cost":20,)") + ask(2) +
                             tell_cost(0, "12") + ask(1) + tell_cost(1, "8") + ask(1));
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[1].find("trials")->as_array().size(), 1U);
  EXPECT_EQ(replies[2].find("trials")->as_array().size(), 0U);
  EXPECT_TRUE(replies[2].find("exhausted")->as_boolean());
}

TEST(SuggestCosts, InvalidSettingsAreRefused) {
  const auto error = [](const std::string& lines) {
    const auto replies = serve(lines);
    return replies.empty() ? "" : replies[0].find("error")->as_string();
  };
  EXPECT_THAT(error(counting_study("tpe")),
              HasSubstr("algorithm.cost_aware: only makes sense with name: auto, gp or ehvi"));
  EXPECT_THAT(error(counting_study("gp", R"("max_cost":0,)")),
              HasSubstr("max_cost: found 0, expected a number above 0"));
  EXPECT_THAT(error(R"({"study":{"algorithm":{"name":"gp","cost_aware":1},"space":[]}})"
                    "\n"),
              HasSubstr("algorithm.cost_aware: found 1, expected true or false"));
}

}  // namespace
}  // namespace fettle::cli
