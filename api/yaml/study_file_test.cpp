// Study files, good and bad. Every file of api/testdata/bad states its errors in lines "# error:
// ...": line, column, path and message.
#include "api/yaml/study_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/test_paths.h"

namespace fettle::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kBadFiles = source_path("api/testdata/bad");

// A Study that is valid except perhaps for `spec`, whose lines are indented by two.
std::string with_spec(const std::string& spec) {
  return "apiVersion: fettle.dev/v1alpha1\nkind: Study\nmetadata: {name: good}\nspec:\n" + spec;
}

const std::string kSpec =
    "  objectives: [{metric: loss, direction: Minimize}]\n"
    "  parameters: [{name: x, type: Double, min: 0, max: 1}]\n"
    "  trial: {template: {spec: {containers: [{name: trial, command: [train]}]}}}\n";

std::vector<std::string> errors_of(const LoadedFile& file) {
  std::vector<std::string> out;
  for (const Diagnostic& diagnostic : file.diagnostics) out.push_back(to_string(diagnostic));
  return out;
}

std::vector<std::string> errors_of(const std::string& text) {
  return errors_of(load_study_text(text, "f"));
}

std::vector<std::string> bad_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kBadFiles)) {
    out.push_back(entry.path().stem().string());
  }
  std::ranges::sort(out);
  return out;
}

// Returns the "# error: " lines of a file, as diagnostics of a file called "f".
std::vector<std::string> expected_errors(const std::string& text) {
  constexpr std::string_view kMark = "# error: ";
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = text.find(kMark, at)) != std::string::npos;) {
    at += kMark.size();
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const bool placed = line.front() >= '0' && line.front() <= '9';
    out.push_back((placed ? "f:" : "f: ") + line);
  }
  return out;
}

class BadFile : public ::testing::TestWithParam<std::string> {};

TEST_P(BadFile, IsRefusedWithTheErrorsItNames) {
  const auto text = read_file(kBadFiles + "/" + GetParam() + ".yaml");
  ASSERT_TRUE(text.ok());
  const LoadedFile file = load_study_text(*text, "f");
  EXPECT_TRUE(file.studies.empty());
  ASSERT_FALSE(expected_errors(*text).empty());
  EXPECT_EQ(errors_of(file), expected_errors(*text));
}

INSTANTIATE_TEST_SUITE_P(, BadFile, ::testing::ValuesIn(bad_files()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(StudyFile, ReadsTheExample) {
  const LoadedFile file = load_study_file(source_path("examples/fashion-mnist.yaml"));
  EXPECT_THAT(errors_of(file), ElementsAre());
  ASSERT_EQ(file.studies.size(), 1U);
  const StudySpec& spec = file.studies[0].spec;
  EXPECT_EQ(file.studies[0].metadata.name, "fashion-mnist");
  EXPECT_EQ(spec.objectives[0].direction, Direction::kMaximize);
  EXPECT_EQ(spec.parameters[0].scale, Scale::kLog);
  EXPECT_EQ(spec.parameters[0].min, 1e-4);
  EXPECT_EQ(spec.trial.timeout, 600);
  EXPECT_EQ(spec.early_stopping->name, api::StoppingKind::kAsha);
}

// A row of the table begins with the names of its files.
TEST(StudyFile, ExamplesThatAreListedAreThere) {
  const auto list = read_file(source_path("examples/README.md"));
  ASSERT_TRUE(list.ok());
  int files = 0;
  std::istringstream lines(*list);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    for (std::size_t at = cell.find('`'); at != cell.npos; at = cell.find('`', at + 1)) {
      const std::size_t end = cell.find('`', at + 1);
      const std::string name = cell.substr(at + 1, end - at - 1);
      EXPECT_TRUE(std::filesystem::exists(source_path("examples/" + name))) << name;
      ++files;
      at = end;
    }
  }
  EXPECT_GT(files, 10);
}

TEST(StudyFile, ReadsTheExampleWithResidualBlocks) {
  const LoadedFile file = load_study_file(source_path("examples/resnet9.yaml"));
  EXPECT_THAT(errors_of(file), ElementsAre());
}

TEST(StudyFile, ReadsSeveralStudies) {
  const std::string second = with_spec(kSpec);
  const std::string first = "---\n" + second;
  LoadedFile file = load_study_text(first + "---\n# nothing here\n---\n" + second, "f");
  EXPECT_THAT(errors_of(file), ElementsAre(HasSubstr("the name of an earlier Study")));
  ASSERT_EQ(file.studies.size(), 1U);
  std::string renamed = second;
  renamed.replace(renamed.find("good"), 4, "next");
  file = load_study_text(first + "---\n" + renamed, "f");
  EXPECT_THAT(errors_of(file), ElementsAre());
  ASSERT_EQ(file.studies.size(), 2U);
  EXPECT_EQ(file.studies[1].metadata.name, "next");
}

TEST(StudyFile, AnchorsAndMergeKeysWork) {
  const LoadedFile file = load_study_text(
      with_spec("  objectives: [{metric: loss, direction: Minimize}]\n"
                "  parameters:\n"
                "  - &rate {name: a, type: Double, min: 0, max: 1}\n"
                "  - {<<: *rate, name: b, max: 2}\n"
                "  - {name: c, type: Boolean, <<: *rate}\n"
                "  trial: {template: {spec: {containers: [{name: t, image: i}]}}}\n"),
      "f");
  EXPECT_THAT(errors_of(file),
              ElementsAre(HasSubstr("parameters[2].min: only makes sense with type Double"),
                          HasSubstr("parameters[2].max: only makes sense with type Double")));
}

TEST(StudyFile, CarriesAnyTextAsAValue) {
  const LoadedFile file = load_study_text(
      with_spec("  objectives: [{metric: loss, direction: Minimize}]\n"
                "  parameters:\n"
                "  - {name: x, type: Categorical, values: ['$(reboot)', '; rm -rf /', \"a\\nb\", "
                "'{{x}}', '\"', 'yes', '1']}\n"
                "  trial: {template: {spec: {containers: [{name: t, image: i}]}}}\n"),
      "f");
  ASSERT_THAT(errors_of(file), ElementsAre());
  EXPECT_THAT(file.studies[0].spec.parameters[0].values,
              ElementsAre(Json("$(reboot)"), Json("; rm -rf /"), Json("a\nb"), Json("{{x}}"),
                          Json("\""), Json("yes"), Json("1")));
}

TEST(StudyFile, TenThousandParametersAreOneError) {
  std::string spec = "  objectives: [{metric: loss, direction: Minimize}]\n  parameters:\n";
  for (int i = 0; i < 10'000; ++i) {
    spec += "  - {name: p" + std::to_string(i) + ", type: Boolean}\n";
  }
  spec += "  trial: {template: {spec: {containers: [{name: t, image: i}]}}}\n";
  EXPECT_THAT(errors_of(with_spec(spec)),
              ElementsAre("f:6:3: spec.parameters: found 10000 entries, expected 1 to 128"));
}

TEST(StudyFile, ManyErrorsAreCutAndCounted) {
  std::string spec = kSpec;
  for (int i = 0; i < 120; ++i) spec += "  unknown" + std::to_string(i) + ": 1\n";
  const std::vector<std::string> errors = errors_of(with_spec(spec));
  ASSERT_EQ(errors.size(), 51U);
  EXPECT_EQ(errors.back(), "f: and 70 more errors");
}

TEST(StudyFile, DeepNestingIsRefused) {
  const std::string deep(400'000, '[');
  EXPECT_THAT(errors_of(deep), ElementsAre(HasSubstr("nested deeper than 64 levels")));
  EXPECT_THAT(errors_of("a: " + deep), ElementsAre(HasSubstr("nested deeper than 64 levels")));
  std::string blocks;
  for (int i = 0; i < 100; ++i) blocks += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(errors_of(blocks), ElementsAre(HasSubstr("nested deeper than 64 levels")));
}

TEST(StudyFile, LargeFilesAreRefused) {
  EXPECT_THAT(errors_of(std::string(10'000'000, '[')),
              ElementsAre(HasSubstr("larger than 1000000 bytes")));
}

TEST(StudyFile, OtherKindsOfFilesAreRefused) {
  EXPECT_THAT(errors_of(std::string("ELF\x7F\x02", 5)),
              ElementsAre(HasSubstr("f:1:4: found a byte that is a control character")));
  EXPECT_THAT(errors_of("name: \xFF"), ElementsAre(HasSubstr("f:1:7: found a byte that is not")));
  EXPECT_THAT(errors_of(""), ElementsAre("f: holds no Study; it is empty"));
}

// kubectl reads YAML 1.1, in which some plain choices have another type than they seem to.
TEST(StudyFile, WarnsOfChoicesThatYamlReadsAsAnotherType) {
  const auto warnings_of = [](const std::string& values) {
    const std::string text = with_spec(
        "  objectives: [{metric: loss, direction: Minimize}]\n"
        "  parameters:\n"
        "  - name: x\n"
        "    type: Categorical\n"
        "    values: [" +
        values +
        "]\n"
        "  trial: {template: {spec: {containers: [{name: trial, command: [train]}]}}}\n");
    const LoadedFile file = load_study_text(text, "f.yaml");
    EXPECT_EQ(file.studies.size(), 1u) << values;
    std::vector<std::string> out;
    for (const Diagnostic& warning : file.warnings) out.push_back(to_string(warning));
    return out;
  };
  EXPECT_THAT(warnings_of("on, maybe, 010"),
              ElementsAre("f.yaml:9:14: spec.parameters[0].values[0]: YAML takes on for true; if a "
                          "text is meant, write \"on\", else true",
                          "f.yaml:9:25: spec.parameters[0].values[2]: YAML takes 010 for 8; if a "
                          "text is meant, write \"010\", else 8"));
  for (const char* surprising :
       {"off", "yes", "No", "y", "N", "0x10", "0b1", "0o7", "1_000", "-07"}) {
    EXPECT_EQ(warnings_of(std::string("sgd, ") + surprising).size(), 1u) << surprising;
  }
  for (const char* plain :
       {"true", "False", "\"on\"", "'010'", "0", "-0.5", "10", "1e3", "0.10", "adam"}) {
    EXPECT_THAT(warnings_of(std::string("sgd, ") + plain), ElementsAre()) << plain;
  }
}

TEST(StudyFile, AMissingFileIsNamed) {
  EXPECT_THAT(errors_of(load_study_file("/nowhere/study.yaml")),
              ElementsAre(HasSubstr("No such file or directory")));
}

// A truncated or scrambled file gives a sentence, never a crash.
TEST(StudyFile, EveryPrefixOfAFileEndsInAnAnswer) {
  const auto text = read_file(source_path("examples/fashion-mnist.yaml"));
  ASSERT_TRUE(text.ok());
  for (std::size_t size = 0; size + 40 < text->size(); size += 7) {
    const LoadedFile file = load_study_text(text->substr(0, size), "f");
    EXPECT_EQ(file.studies.size() + (file.diagnostics.empty() ? 0 : 1), 1U) << size;
  }
}

}  // namespace
}  // namespace fettle::api
