// The file of results from elsewhere, line by line.
#include "cli/exchange/known_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/study/study_rules.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

std::vector<api::Objective> loss() {
  api::Objective out;
  out.metric = "loss";
  return {out};
}

std::string line(double x, double value, const std::string& more = "") {
  return R"({"parameters": {"x": )" + std::to_string(x) + R"(}, "values": {"loss": )" +
         std::to_string(value) + "}" + more + "}\n";
}

Result<KnownFile> read(const std::string& text) {
  return read_known_file(text, "old.jsonl", loss());
}

TEST(KnownFile, KeepsTheLinesInTheirOrder) {
  const auto file = read("\n" + line(0.5, 3) + " \r\n" + line(0.25, 2, R"(, "step": 27)"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->results, 2U);
  ASSERT_THAT(file->known, SizeIs(2));
  EXPECT_EQ(file->known[1].dump(), R"({"parameters":{"x":0.25},"values":{"loss":2},"step":27})");
}

TEST(KnownFile, NamesFileAndLineOfABadResult) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"parameters\": {\"x\": 1}", "old.jsonl:2: "},
      {"[1]", "found array, expected an object with parameters and values"},
      {R"({"values": {"loss": 1}})", "has no parameters"},
      {R"({"parameters": {"x": [1]}, "values": {"loss": 1}})", "parameters.x: found [1]"},
      {R"({"parameters": {"x": 1}})", "has no values"},
      {R"({"parameters": {"x": 1}, "values": {"loss": "low"}})", "values.loss: found \"low\""},
      {R"({"parameters": {"x": 1}, "values": {"loss": null}})", "values.loss: found null"},
      {R"({"parameters": {"x": 1}, "values": {"loss": 1}, "step": 1.5})", "step: found 1.5"},
      {R"({"parameters": {"x": 1}, "values": {"loss": 1}, "stopped": 1})", "stopped: found 1"},
      {R"({"parameters": {"x": 1}, "values": {"loss": 1}, "name": 1})", "name: found 1"},
      {R"({"params": {"x": 1}, "values": {"loss": 1}})", "params: there is no such member"},
  };
  for (const auto& [text, error] : cases) {
    const auto file = read(line(0, 1) + text);
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(file.error().message, StartsWith("old.jsonl:2: "));
    EXPECT_THAT(file.error().message, HasSubstr(error));
  }
}

TEST(KnownFile, RefusesAFileWithoutResults) {
  EXPECT_THAT(read("\n\n").error().message, HasSubstr("old.jsonl holds no result"));
}

TEST(KnownFile, KeepsTheBestAndTheLastOfMany) {
  std::string text = line(0.125, -1) + line(0.5, -2, R"(, "stopped": true)");
  for (int i = 0; i < 1000; ++i) text += line(i, 1000 - i);
  const auto file = read(text);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->results, 1002U);
  ASSERT_THAT(file->known, SizeIs(api::kMostKnownResults));
  EXPECT_THAT(file->known.front().dump(), HasSubstr(R"("x":0.125)")) << "the best of all";
  EXPECT_THAT(file->known.back().dump(), HasSubstr(R"("x":999)"));
}

TEST(KnownFile, BoundsTheBytesOfAStudy) {
  std::string text;
  for (int i = 0; i < 256; ++i) {
    text += R"({"parameters": {"x": ")" + std::string(4000, 'x') + R"("}, "values": {"loss": 1}})" +
            std::string("\n");
  }
  const auto file = read(text);
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->known, SizeIs(64));
}

}  // namespace
}  // namespace fettle::cli
