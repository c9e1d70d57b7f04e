// Fields that a version does not know survive its writes.
#include "runtime/local/store/stored_json.h"

#include <gtest/gtest.h>

namespace fettle::local {
namespace {

Json json(const char* text) { return parse_json(text).value(); }

TEST(StoredJson, CarriesOverWhatIsNotKnown) {
  struct Case {
    const char* stored;
    const char* before;
    const char* after;
    const char* expected;
  };
  for (const auto& [stored, before, after, expected] : {
           Case{R"({"a": 1, "new": 7})", R"({"a": 1})", R"({"a": 2})", R"({"a": 2, "new": 7})"},
           Case{R"({"m": {"a": 1, "new": 7}})", R"({"m": {"a": 1}})", R"({"m": {"a": 2, "b": 3}})",
                R"({"m": {"a": 2, "new": 7, "b": 3}})"},
           Case{R"({"a": 1, "new": 7})", R"({"a": 1})", R"({})", R"({"new": 7})"},
           Case{R"({"l": [{"a": 1, "new": 7}]})", R"({"l": [{"a": 1}]})",
                R"({"l": [{"a": 1}, {"a": 2}]})", R"({"l": [{"a": 1, "new": 7}, {"a": 2}]})"},
           Case{R"({"l": [1, 2]})", R"({"l": [1, 2]})", R"({"l": [1]})", R"({"l": [1]})"},
           Case{R"({"a": {"new": 1}})", R"({"a": {}})", R"({"a": 3})", R"({"a": 3})"},
       }) {
    EXPECT_EQ(carry_over(json(stored), json(before), json(after)), json(expected)) << stored;
  }
}

TEST(StoredJson, NamesWhatIsNotKnown) {
  const Json stored = json(R"({"a": 1, "m": {"x": 1, "y": null}, "l": [{"b": 1}, {"c": 2}]})");
  const Json known = json(R"({"a": 2, "m": {}, "l": [{"b": 1}, {}]})");
  EXPECT_EQ(unknown_paths(stored, known, 9), (std::vector<std::string>{"m.x", "l[1].c"}));
  EXPECT_EQ(unknown_paths(stored, known, 1).size(), 1U);
  EXPECT_TRUE(unknown_paths(known, stored, 9).empty());
}

}  // namespace
}  // namespace fettle::local
