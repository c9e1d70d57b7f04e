// Plain YAML scalars have the types that kubectl gives them.
#include <gtest/gtest.h>

#include <cmath>

#include "api/yaml/yaml_reader.h"

namespace fettle::api {
namespace {

struct Case {
  const char* text;
  Json value;
};

TEST(PlainScalar, HasTheTypeThatKubectlGivesIt) {
  const Case cases[] = {
      {"yes", true},      {"On", true},       {"y", true},
      {"no", false},      {"OFF", false},     {"n", false},
      {"true", true},     {"tRue", "tRue"},   {"~", nullptr},
      {"null", nullptr},  {"", nullptr},      {"nul", "nul"},
      {"3", 3},           {"-3", -3},         {"+3", 3},
      {"1_000", 1000},    {"0x1F", 31},       {"0o17", 15},
      {"017", 15},        {"0b101", 5},       {"-0x10", -16},
      {"08", 8},          {"1e-4", 1e-4},     {"1E5", 100000},
      {"1.0", 1},         {".5", 0.5},        {"5.", 5},
      {"1e", "1e"},       {"1.2.3", "1.2.3"}, {"-", "-"},
      {"20Gi", "20Gi"},   {"2h", "2h"},       {"0x", "0x"},
      {"sgd", "sgd"},     {"1e-400", 0},      {"9223372036854775808", 0x1p63},
      {"12:30", "12:30"}, {"<<", "<<"},       {"2026-01-31", "2026-01-31"},
  };
  for (const Case& test : cases) {
    const Result<Json> value = resolve_plain_scalar(test.text);
    ASSERT_TRUE(value.ok()) << test.text;
    EXPECT_EQ(*value, test.value) << test.text << " gives " << value->dump();
  }
  EXPECT_TRUE(std::isnan(resolve_plain_scalar(".nan")->as_double()));
  EXPECT_EQ(resolve_plain_scalar("-.inf")->as_double(), -HUGE_VAL);
}

TEST(PlainScalar, NumbersBeyondADoubleAreRefused) {
  EXPECT_FALSE(resolve_plain_scalar("1e309").ok());
  EXPECT_FALSE(resolve_plain_scalar("-1e999").ok());
}

}  // namespace
}  // namespace fettle::api
