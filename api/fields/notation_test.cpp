// Notations of people: durations, quantities, times and names.
#include <gtest/gtest.h>

#include <array>

#include "api/fields/enum_names.h"
#include "api/fields/nearest.h"
#include "api/fields/quantity.h"
#include "api/fields/timestamp.h"
#include "api/study/parameter_env.h"
#include "api/study/study.h"
#include "api/trainer/trainer_config.h"
#include "api/trial/trial.h"
#include "base/philox.h"

namespace fettle::api {
namespace {

TEST(Duration, ReadsHumanNotation) {
  const std::pair<const char*, double> cases[] = {
      {"90s", 90}, {"10m", 600},   {"1h30m", 5400}, {"2d", 172800},
      {"5", 5},    {"500ms", 0.5}, {"1.5h", 5400},  {"0.25s", 0.25},
  };
  for (const auto& [text, seconds] : cases) {
    ASSERT_TRUE(parse_duration(text).ok()) << text;
    EXPECT_EQ(*parse_duration(text), seconds) << text;
  }
  for (const char* text : {"", "s", "-1s", "1x", "1h30", "1 h", "soon", "1e400s", "nan", "inf"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(Duration, WritesTheNotationItReads) {
  EXPECT_EQ(format_duration(7200), "2h");
  EXPECT_EQ(format_duration(90), "1m30s");
  EXPECT_EQ(format_duration(0), "0s");
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const double seconds =
        i % 2 == 0 ? random.uniform() * 1e6 : static_cast<double>(random.below(1'000'000'000));
    EXPECT_EQ(*parse_duration(format_duration(seconds)), seconds) << format_duration(seconds);
  }
}

TEST(Quantity, ReadsHumanNotation) {
  const std::pair<const char*, double> cases[] = {
      {"20Gi", 20 * 0x1p30}, {"500M", 5e8},  {"250m", 0.25}, {"1E", 1e18}, {"1e3", 1000},
      {"1E3", 1000},         {"-1k", -1000}, {"0.5", 0.5},   {"3u", 3e-6}, {"7", 7},
  };
  for (const auto& [text, value] : cases) {
    ASSERT_TRUE(parse_quantity(text).ok()) << text;
    EXPECT_EQ(*parse_quantity(text), value) << text;
  }
  for (const char* text : {"", "Gi", "20GB", "1 G", "1e999", "0x10", "1K", "nan", "--1"}) {
    EXPECT_FALSE(parse_quantity(text).ok()) << text;
  }
}

TEST(Quantity, WritesTheNotationItReads) {
  EXPECT_EQ(format_quantity(20 * 0x1p30), "20Gi");
  EXPECT_EQ(format_quantity(1500), "1500");
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.normal() * (i % 2 == 0 ? 1e-3 : 0x1p40);
    EXPECT_EQ(*parse_quantity(format_quantity(value)), value) << format_quantity(value);
  }
}

TEST(Timestamp, IsRfc3339InUtc) {
  EXPECT_EQ(format_timestamp(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_timestamp(1'769'860'800'250), "2026-01-31T12:00:00.250Z");
  EXPECT_EQ(parse_timestamp("2026-01-31T12:00:00Z"), 1'769'860'800'000);
  EXPECT_EQ(parse_timestamp("2026-01-31T12:00:00.2509Z"), 1'769'860'800'250);
  for (const char* text : {"", "2026-01-31", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                           "2026-01-31T24:00:00Z", "2026-01-31T12:00:00", "yesterday"}) {
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
  }
}

TEST(Nearest, FindsOnlyTypos) {
  const std::array<std::string_view, 4> names{"parameters", "objectives", "min", "max"};
  EXPECT_EQ(nearest("paramters", names), "parameters");
  EXPECT_EQ(nearest("Parameters", names), "parameters");
  EXPECT_EQ(nearest("mni", names), "min");
  EXPECT_EQ(nearest("xyz", names), "");
  EXPECT_EQ(did_you_mean("low", names), "; did you mean min?") << "Optuna's word for it";
  EXPECT_EQ(did_you_mean("dehb", std::vector<std::string_view>{"grid", "bohb"}),
            "; dehb was removed: use bohb");
  EXPECT_EQ(did_you_mean("dehb", names), "") << "another kind of name";
  EXPECT_EQ(did_you_mean("n_jobs", names), "") << "ours for it is not among the candidates";
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(100'000, 'p'), names), "");
}

TEST(ParameterEnv, IsUpperCaseLettersDigitsAndUnderscores) {
  EXPECT_EQ(parameter_env_name("learning-rate"), "FETTLE_PARAM_LEARNING_RATE");
  EXPECT_EQ(parameter_env_name("a.B_2"), "FETTLE_PARAM_A_B_2");
  EXPECT_EQ(parameter_env_value("; rm -rf $(x)"), "; rm -rf $(x)");
  EXPECT_EQ(parameter_env_value(1e-4), "1e-04");
  EXPECT_EQ(parameter_env_value(true), "true");
}

TEST(Names, GoBothWays) {
  EXPECT_EQ(to_string(LayerType::kBatchNorm), "batchNorm");
  EXPECT_EQ(from_string<Outcome>("OutOfMemory"), Outcome::kOutOfMemory);
  EXPECT_EQ(from_string<Take>("last"), std::nullopt);
}

}  // namespace
}  // namespace fettle::api
