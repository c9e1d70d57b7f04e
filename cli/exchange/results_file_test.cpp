// The results that travel inside a Study.
#include "cli/exchange/results_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kLine = R"({"parameters": {"x": 1}, "values": {"loss": 2}})";

class ResultsFile : public testing::Test {
 protected:
  ResultsFile() {
    std::filesystem::create_directories(folder_);
    api::Objective loss;
    loss.metric = "loss";
    study_.spec.objectives = {loss};
    study_.spec.warm_start = api::WarmStart{};
    study_.spec.warm_start->results = "old.jsonl";
    const Json warm = Json::object({{"results", "old.jsonl"}});
    document_ = Json::object({{"spec", Json::object({{"warmStart", warm}})}});
  }
  ~ResultsFile() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) {
    ASSERT_TRUE(write_file(folder_ + "/old.jsonl", text).ok());
  }
  Result<std::string> read() { return read_results(folder_, study_, document_); }

  const std::string folder_ = testing::TempDir() + "fettle_results_file";
  api::Study study_;
  Json document_;
};

TEST_F(ResultsFile, BecomesAPartOfStudyAndDocument) {
  write(std::string(kLine).append("\n"));
  const auto sentence = read();
  ASSERT_TRUE(sentence.ok()) << sentence.error().message;
  EXPECT_THAT(*sentence, IsEmpty());
  EXPECT_THAT(study_.spec.warm_start->known, SizeIs(1));
  EXPECT_EQ(document_.find("spec")->dump(), R"({"warmStart":{"results":"old.jsonl","known":[)"
                                            R"({"parameters":{"x":1},"values":{"loss":2}}]}})");
}

TEST_F(ResultsFile, SaysHowManyOfManyAreUsed) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::string(kLine) + "\n";
  write(text);
  EXPECT_EQ(read().value(), "old.jsonl has 300 results; the best and the last 256 are used");
}

TEST_F(ResultsFile, NamesWhatIsWrong) {
  EXPECT_THAT(read().error().message, HasSubstr("the path is relative to the Study's file"));
  EXPECT_EQ(read().error().code, ErrorCode::kInvalid);
  write(std::string(kLine) + "\n{}\n");
  EXPECT_THAT(read().error().message, HasSubstr("old.jsonl:2: has no parameters"));
  study_.spec.warm_start->known = {Json::object()};
  EXPECT_THAT(read().error().message, HasSubstr("remove one of the two"));
}

TEST_F(ResultsFile, AStudyKeepsTheResultsItBeganWith) {
  api::Study stored = study_;
  EXPECT_FALSE(keep_results(stored, study_, document_)) << "it has none";
  stored.spec.warm_start->known = {parse_json(kLine).value()};
  EXPECT_TRUE(keep_results(stored, study_, document_));
  EXPECT_EQ(study_.spec, stored.spec);
  EXPECT_NE(document_.find("spec")->find("warmStart")->find("known"), nullptr);
  study_.spec.warm_start->results = "other.jsonl";
  EXPECT_FALSE(keep_results(stored, study_, document_));
}

TEST_F(ResultsFile, AStudyWithoutOneIsLeftAsItIs) {
  study_.spec.warm_start.reset();
  EXPECT_THAT(read().value(), IsEmpty());
}

}  // namespace
}  // namespace fettle::cli
