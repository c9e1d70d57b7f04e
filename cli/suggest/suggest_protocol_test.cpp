// Protocol 2 of `fettle suggest`, line by line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/testing/test_suggest.h"

namespace fettle::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Exchange {
  std::string name;
  std::vector<std::string> sent;
  std::vector<std::string> replies;  // each reply contains its text, in this order
};

// Names of tests in messages.
void PrintTo(const Exchange& exchange, std::ostream* out) { *out << exchange.name; }

std::string grid(const std::string& more = "") {
  return R"({"study":{"algorithm":{"name":"grid"},"space":[{"name":"n","type":"int","low":1,)"
         R"("high":5},{"name":"o","type":"categorical","choices":["a","b"]}])" +
         more + "}";
}

class SuggestProtocol : public ::testing::TestWithParam<Exchange> {};

TEST_P(SuggestProtocol, RepliesAsDocumented) {
  std::string input;
  for (const std::string& line : GetParam().sent) input += line + "\n";
  const std::vector<std::string> replies = replies_to(input);
  ASSERT_EQ(replies.size(), GetParam().replies.size()) << ::testing::PrintToString(replies);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_TRUE(parse_json(replies[i]).ok()) << replies[i];
    EXPECT_THAT(replies[i], HasSubstr(GetParam().replies[i]));
  }
}

const Exchange kExchanges[] = {
    {"HelloComesBeforeTheStudy",
     {R"({"hello":2,"re":4})", R"({"hello":1})", R"({"hello":9})", R"({"hello":0,"re":5})",
      R"({"hello":true})"},
     {R"({"hello":{"protocol":2,"version":")", R"({"hello":{"protocol":1,)",
      R"({"hello":{"protocol":2,)", R"("line":4,"re":5})", "found true"}},
    {"EveryReplyRepeatsTheNumber",
     {grid() + R"(,"re":1})", R"({"re":-7,"ask":1})", R"({"tell":{"id":0,"value":1},"re":3})",
      R"({"tell":{"id":0,"value":1},"re":4})", R"({"oops":1,"re":5})", R"({"best":true,"re":6})",
      R"({"ask":1,"re":"a"})", R"({"ask":1,"tell":{},"re":8})"},
     {R"("params":{"n":1,"o":"a"}}],"re":-7})",
      R"({"error":"trial 0 has ended already","line":4,"re":4})", R"("line":5,"re":5})",
      R"("value":1},"re":6})", R"(re must be a whole number; found \"a\"","line":7})",
      R"("line":8,"re":8})"}},
    {"AnAckIsAReply",
     {grid() + R"(,"ack":true,"re":1})", R"({"ask":1,"ack":true})",
      R"({"tell":{"id":0,"value":1},"ack":true,"re":2})",
      R"({"tell":{"id":0,"value":1},"ack":false})", R"({"first":[{"n":5}],"ack":true})",
      R"({"known":[],"ack":true,"re":9})", R"({"ask":1,"ack":1})"},
     {R"({"ok":true,"trials":0,"re":1})", R"({"trials":[{"id":0,)", R"({"ok":true,"re":2})",
      "ended already", R"({"ok":true})", R"({"ok":true,"re":9})", "ack must be true or false"}},
    {"TheBestHasTheBestValue",
     {grid() + "}", R"({"best":true})", R"({"ask":4})", R"({"tell":{"id":2,"value":5}})",
      R"({"best":true})", R"({"tell":{"id":0,"value":-3}})", R"({"tell":{"id":1,"value":null}})",
      R"({"best":true})", R"({"best":1})"},
     {R"({"best":null})", "trials", R"({"best":{"id":2,"params":{"n":2,"o":"a"},"value":5}})",
      R"({"best":{"id":0,"params":{"n":1,"o":"a"},"value":-3}})", "best must be true"}},
    {"TheBestOfSeveralObjectivesIsAFront",
     {grid(R"(,"directions":["minimize","maximize"])") + "}", R"({"best":true})", R"({"ask":4})",
      R"({"tell":{"id":0,"values":[1,1]}})", R"({"tell":{"id":1,"values":[2,0]}})",
      R"({"tell":{"id":2,"values":[2,3]}})", R"({"tell":{"id":3,"values":[0,null]}})",
      R"({"best":true})"},
     {R"({"front":[]})", "trials",
      R"({"front":[{"id":0,"params":{"n":1,"o":"a"},"values":[1,1]},)"
      R"({"id":2,"params":{"n":2,"o":"a"},"values":[2,3]}]})"}},
    {"AReportedTrialIsNotTheBestBeforeItsEnd",
     {grid(R"(,"resource":{"min":1,"max":4})") + "}", R"({"ask":1})",
      R"({"report":{"id":0,"step":1,"value":3}})", R"({"best":true})",
      R"({"report":{"id":0,"step":4,"value":2}})", R"({"best":true})"},
     {"trials", "continue", R"({"best":null})", "continue", R"("value":2})"}},
    {"FirstPointsComeFirst",
     {grid(R"(,"first":[{"n":4,"o":"b"},{"n":2}])") + "}", R"({"ask":1})",
      R"({"first":[{"o":"b","n":5}]})", R"({"ask":3})"},
     {R"([{"id":0,"params":{"n":4,"o":"b"}}])",
      R"([{"id":1,"params":{"n":5,"o":"b"}},{"id":2,"params":{"n":2,"o":)"}},
    {"FirstPointsMustBeOfTheSpace",
     {grid(R"(,"first":[{"n":4},{"m":4}])") + "}", grid(R"(,"first":[{"n":9}])") + "}",
      grid(R"(,"first":[{"o":"c"}])") + "}", grid(R"(,"first":[3])") + "}", grid() + "}",
      R"({"first":{"n":1}})", R"({"first":[{"n":"1"}],"re":7})", R"({"first":[1]})"},
     {R"(first[1] is not of this space: the space has no parameter \"m\")",
      "first[0] is not of this space: n: found 9, expected a number from 1 to 5",
      R"(o: found \"c\", expected one of its choices)", "first[0]", "first must be a list",
      R"("line":7,"re":7})", "expected an object of parameters"}},
    {"FirstPointsNeedRoomInTheBudget",
     {grid(R"(,"max_trials":2)") + "}", R"({"ask":1})", R"({"first":[{"n":4},{"n":5}]})",
      R"({"first":[{"n":5}]})", R"({"tell":{"id":1,"value":3}})", R"({"ask":5})"},
     {"trials", "first: there are 2 points, but the budget of the study leaves room for 1 more",
      "trial 1 was not handed out yet", R"([{"id":1,"params":{"n":5,)"}},
    {"KnownResultsAreChecked",
     {grid() + "}", R"({"known":[{"params":{"n":9,"o":"a"},"value":1}]})",
      R"({"known":[{"params":{"n":3},"value":1}]})", R"({"known":[{"params":{"n":3,"o":"a"}}]})",
      R"({"known":[{"params":{"n":3,"o":"a"},"value":NaN}]})",
      R"({"known":[{"params":{"n":3,"o":"a"},"values":[1,2]}]})",
      R"({"known":[{"params":{"n":3,"o":"a"},"value":1,"x":1}]})",
      R"({"known":[{"params":{"n":3,"o":"a"},"value":1,"step":1}],"ack":true})"},
     {"known[0] is not of this space: n: found 9", "known[0] lacks the parameter o",
      "known[0]: give either value or", "known[0]", "known[0]: there are 1 objectives",
      "known[0].x", R"({"ok":true})"}},
    {"ConstraintsDecideWhatIsFeasible",
     {grid(R"(,"constraints":[{"metric":"ms","max":10},{"metric":"acc","min":0.5}])") + "}",
      R"({"ask":4})", R"({"tell":{"id":0,"value":1}})",
      R"({"tell":{"id":0,"value":1,"metrics":{"ms":11,"acc":0.9}}})",
      R"({"tell":{"id":1,"value":2,"metrics":{"ms":10,"acc":0.5}}})",
      R"({"tell":{"id":2,"value":0,"metrics":{"ms":1,"acc":null}}})",
      R"({"tell":{"id":3,"value":null}})", R"({"best":true})"},
     {"trials", "tell needs ms in metrics", R"({"best":{"id":1,)"}},
    {"ConstraintsAndMetricsAreChecked",
     {grid(R"(,"constraints":[{"metric":"ms"}])") + "}",
      grid(R"(,"constraints":[{"metric":"ms","min":2,"max":1}])") + "}",
      grid(R"(,"constraints":[{"max":1}])") + "}", grid() + "}", R"({"ask":1})",
      R"({"tell":{"id":0,"value":1,"metrics":[1]}})",
      R"({"tell":{"id":0,"value":1,"metrics":{"ms":"1"}}})",
      R"({"tell":{"id":0,"value":1,"metrics":{"value":1}}})"},
     {"constraints[0]: give min, max or both", "constraints[0]: min must not be above max",
      "constraints[0].metric", "trials", "metrics must be an object", "metrics.ms: a value must be",
      "metrics.value is an objective"}},
    {"ATellMayRepeatTheLastReport",
     {grid(R"(,"resource":{"min":1,"max":4})") + "}", R"({"ask":3})",
      R"({"report":{"id":0,"step":4,"value":2}})", R"({"tell":{"id":0,"value":3}})",
      R"({"tell":{"id":0,"value":2},"ack":true})", R"({"tell":{"id":0},"ack":true})",
      R"({"tell":{"id":1,"value":2}})", R"({"tell":{"id":1,"value":2}})", R"({"tell":{"id":1}})",
      R"({"report":{"id":2,"step":4,"value":null}})",
      R"({"tell":{"id":2,"value":null},"ack":true})", R"({"tell":{"id":2,"value":1}})"},
     {"trials", "continue", "trial 0 has ended already", R"({"ok":true})", R"({"ok":true})",
      "trial 1 has ended already", "trial 1 has ended already", "continue", R"({"ok":true})",
      "trial 2 has ended already"}},
    {"ATellMayRepeatAStop",
     {grid(R"(,"resource":{"min":1,"max":4},"early_stopping":{"name":"threshold","threshold":5})") +
          "}",
      R"({"ask":1})", R"({"report":{"id":0,"step":1,"value":9}})", R"({"tell":{"id":0,"value":1}})",
      R"({"tell":{"id":0,"value":9},"ack":true})"},
     {"trials", "stop", "trial 0 has ended already", R"({"ok":true})"}},
    {"NothingComesBeforeTheStudyButHello",
     {R"({"best":true,"re":1})", R"({"first":[]})", R"({"known":[]})"},
     {R"(best before a study)", "first before a study", "known before a study"}},
};

INSTANTIATE_TEST_SUITE_P(Exchanges, SuggestProtocol, ::testing::ValuesIn(kExchanges),
                         [](const auto& test) { return test.param.name; });

// A result from elsewhere changes what a search that learns suggests.
TEST(SuggestKnown, LeadsTheSearch) {
  const std::string head =
      R"({"study":{"algorithm":{"name":"gp"},"space":[{"name":"x","type":"float","low":0,"high":1}])";
  const std::string known =
      R"([{"params":{"x":0.125},"value":-4},{"params":{"x":0.875},"value":2}])";
  const auto at_start = replies_to(head + R"(,"known":)" + known + "}}\n{\"ask\":1}\n");
  const auto later = replies_to(head + "}}\n{\"known\":" + known + "}\n{\"ask\":1}\n");
  const auto never = replies_to(head + "}}\n{\"ask\":1}\n");
  EXPECT_THAT(at_start[0], StartsWith(R"({"trials":[{"id":0,"params":{"x":0.125}})"));
  EXPECT_EQ(later, at_start);
  EXPECT_NE(never, at_start);
}

TEST(SuggestKnown, HasALimit) {
  std::string many;
  for (int i = 0; i < 201; ++i) {
    many += (i == 0 ? "" : ",") + std::string(R"({"params":{"x":0.5},"value":1})");
  }
  const std::string head = R"({"study":{"space":[{"name":"x","type":"float","low":0,"high":1}])";
  EXPECT_THAT(replies_to(head + ",\"known\":[" + many + "]}}\n")[0], HasSubstr("at most 200"));
  EXPECT_THAT(replies_to(head + "}}\n{\"known\":[" + many + "]}\n")[0], HasSubstr("at most 200"));
}

}  // namespace
}  // namespace fettle::cli
