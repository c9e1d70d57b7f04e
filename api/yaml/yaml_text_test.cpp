#include "api/yaml/yaml_text.h"

#include <gtest/gtest.h>

namespace fettle::api {
namespace {

TEST(ToYaml, LooksHandWritten) {
  const Json layers = Json::Array{Json::object({{"type", "conv"}, {"channels", 16}}),
                                  Json::object({{"type", "relu"}})};
  const Json value = Json::object({{"rate", 0.0123},
                                   {"nested", Json::object({{"layers", layers}})},
                                   {"numbers", Json::Array{1, 2.5}},
                                   {"nothing", Json::object()}});
  EXPECT_EQ(to_yaml(value, 2),
            "  rate: 0.0123\n"
            "  nested:\n"
            "    layers:\n"
            "    - {type: conv, channels: 16}\n"
            "    - {type: relu}\n"
            "  numbers: [1, 2.5]\n"
            "  nothing: {}\n");
}

TEST(ToYaml, WritesAFieldALine) {
  const Json rules = Json::Array{Json::object({{"a", 1}, {"b", Json::object({{"c", "d"}})}}), 2};
  EXPECT_EQ(to_yaml(Json::object({{"rules", rules}}), 0, YamlLists::kLineEachField),
            "rules:\n"
            "- a: 1\n"
            "  b:\n"
            "    c: d\n"
            "- 2\n");
}

TEST(ToYaml, QuotesTextThatYamlWouldReadAsAnotherType) {
  for (const char* text : {"", "yes", "No", "null", "1e3", "12", "-x", "a: b", "a #b", "*x",
                           "$(rm -rf)", "{{}}", "line\nbreak", "'", "\""}) {
    EXPECT_EQ(to_yaml(Json(text), 0), Json(text).dump() + '\n') << text;
  }
  for (const char* text : {"adam", "/data/train.gz", "bf16", "_x", "a-b"}) {
    EXPECT_EQ(to_yaml(Json(text), 0), std::string(text) + '\n');
  }
}

TEST(YamlText, FlowStyleStandsOnOneLine) {
  const Json value =
      Json::object({{"a", Json::Array{Json(1), Json("on")}}, {"b", Json::object({{"c", "x y"}})}});
  EXPECT_EQ(to_flow_yaml(value), R"({a: [1, "on"], b: {c: "x y"}})");
}

}  // namespace
}  // namespace fettle::api
