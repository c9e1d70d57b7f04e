#include "base/merge_patch.h"

#include <gtest/gtest.h>

namespace fettle {
namespace {

Json json(const char* text) { return *parse_json(text); }

// The cases of RFC 7396, appendix A.
TEST(MergePatch, AppliesAsTheRfcSays) {
  const struct {
    const char* original;
    const char* patch;
    const char* result;
  } cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", R"(null)", R"(null)"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& c : cases) {
    Json target = json(c.original);
    merge_patch(target, json(c.patch));
    EXPECT_EQ(target, json(c.result)) << c.original << " " << c.patch;
  }
}

TEST(MergePatch, TheDifferenceLeadsFromOneToTheOther) {
  const char* const documents[] = {R"({})", R"({"a":1})", R"({"a":{"b":1,"c":[1,2]}})",
                                   R"({"a":{"b":2},"d":"x"})", R"({"a":{},"d":{"e":true}})"};
  for (const char* from : documents) {
    for (const char* to : documents) {
      Json target = json(from);
      const Json patch = make_merge_patch(target, json(to));
      merge_patch(target, patch);
      EXPECT_EQ(target, json(to)) << from;
    }
    EXPECT_EQ(make_merge_patch(json(from), json(from)), Json::object());
  }
  EXPECT_EQ(make_merge_patch(json(R"({"a":{"b":1,"c":1}})"), json(R"({"a":{"b":1}})")),
            json(R"({"a":{"c":null}})"));
}

}  // namespace
}  // namespace fettle
