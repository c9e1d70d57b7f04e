#include "trainer/program/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <vector>

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

Result<Arguments> read(std::vector<const char*> words) {
  words.insert(words.begin(), "fettle-trainer");
  return read_arguments(static_cast<int>(words.size()), words.data());
}

TEST(Arguments, OptionsMayStandBeforeAndAfterTheFile) {
  const auto read_ones =
      read({"--seed", "7", "trial.json", "--until-epoch=3", "--checkpoints", "kept", "--gpus=2"});
  ASSERT_TRUE(read_ones.ok()) << read_ones.error().message;
  EXPECT_EQ(read_ones->file, "trial.json");
  EXPECT_EQ(read_ones->overrides.seed, 7U);
  EXPECT_EQ(read_ones->overrides.until_epoch, 3);
  EXPECT_EQ(read_ones->overrides.checkpoints, "kept");
  EXPECT_EQ(read_ones->overrides.gpus, 2);
}

TEST(Arguments, AnOptionalValueIsNotTheNextArgument) {
  const auto without = read({"--profile", "trial.json"});
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->profiled_steps, 10);
  EXPECT_EQ(without->file, "trial.json");
  EXPECT_EQ(read({"--profile=4"})->profiled_steps, 4);
}

TEST(Arguments, TheLastValueCountsAndNumbersAreDecimal) {
  EXPECT_EQ(read({"--batch", "8", "--batch", "010"})->bench.training.global_batch, 10);
}

TEST(Arguments, WithoutAFileItIsTheOneOfTheEnvironment) {
  setenv("FETTLE_TRIAL", "of-environment.json", 1);
  EXPECT_EQ(read({"--dry-run"})->file, "of-environment.json");
  EXPECT_EQ(read({"named.json"})->file, "named.json");
  unsetenv("FETTLE_TRIAL");
  EXPECT_EQ(read({})->file, "");
  EXPECT_EQ(read({"--", "--odd-name.json"})->file, "--odd-name.json");
}

TEST(Arguments, ThreadsAreOfTheBenchmark) {
  const auto threads = read({"--bench", "mlp", "--threads", "4"});
  EXPECT_EQ(threads->bench.model, "mlp");
  EXPECT_EQ(threads->bench.training.threads, 4);
}

TEST(Arguments, WhatIsWrongIsNamedWithTheWayOut) {
  const struct {
    std::vector<const char*> words;
    const char* said;
  } cases[] = {
      {{"--sead", "7"}, "there is no option --sead; see fettle-trainer --help"},
      {{"-s"}, "there is no option -s"},
      {{"--seed"}, "--seed: 1 required N missing; see fettle-trainer --help"},
      {{"--seed", "x"}, "--seed: \"x\" is not a number of at least 0"},
      {{"--seed", "-1"}, "--seed: \"-1\" is not"},
      {{"--dry-run=yes"}, "--dry-run: takes no value"},
      {{"--gpus", "65"}, "--gpus: \"65\" is not a number from 1 to 64"},
      {{"--batch", "0"}, "--batch: \"0\" is not a number of at least 1"},
      {{"--output", "xml"}, "--output: xml not in {text,json}"},
      {{"--precision", "fp8"}, "--precision: fp8 not in {auto,fp32,tf32,bf16,fp16}"},
      {{"--seconds", "nan"}, "--seconds: \"nan\" is not a number of at least 0"},
      {{"--profile=x"}, "--profile: \"x\" is not a number of at least 0"},
      {{"a.json", "b.json"}, "more than one file: a.json and b.json"},
  };
  for (const auto& c : cases) {
    const auto refused = read(c.words);
    ASSERT_FALSE(refused.ok()) << c.said;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr(c.said));
  }
}

// Parser and help share one table: every parsed option is in the help, and the help fits a
// terminal.
TEST(Arguments, TheHelpNamesEveryOptionOnceAndFitsATerminal) {
  const std::string help = help_text();
  for (const char* option : {"--seed N", "--profile[=STEPS]", "--output text|json", "--version",
                             "RANK, WORLD_SIZE", "75 "}) {
    const std::size_t at = help.find(option);
    ASSERT_NE(at, std::string::npos) << option;
    EXPECT_EQ(help.find("\n  " + std::string(option), at), std::string::npos) << option;
  }
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

}  // namespace
}  // namespace fettle::trainer
