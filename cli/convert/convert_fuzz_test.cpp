// Damaged Experiments: no input crashes the conversion, and whatever comes out of it reads back as
// the Study that was converted, comments and all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include "api/yaml/yaml_reader.h"
#include "base/file.h"
#include "base/test_paths.h"
#include "cli/convert/commented_yaml.h"
#include "cli/convert/convert_files.h"
#include "cli/convert/katib.h"

namespace fettle::cli {
namespace {

std::vector<std::string> examples() {
  std::vector<std::string> texts;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_path("cli/convert/testdata/katib"))) {
    texts.push_back(read_file(entry.path()).value());
  }
  std::ranges::sort(texts);
  return texts;
}

// Values that are wrong nearly everywhere.
const std::vector<Json>& odd_values() {
  static const std::vector<Json> kValues = {
      Json(),
      Json(true),
      Json(0),
      Json(-1),
      Json(1e308),
      Json(""),
      Json("1e400"),
      Json("nan"),
      Json("a\nb: c # d"),
      Json("${trialParameters.learningRate}"),
      Json("${trialParameters."),
      Json("${trialSpec.Labels["),
      Json("--- {[\"'\x01\u00ff"),
      Json(std::string(300, '/')),
      Json::array(),
      Json::object(),
      Json(Json::Array{Json(), Json(3), Json::object()}),
      Json::object({{"name", Json()}, {"a.b[3]", 1}}),
  };
  return kValues;
}

void collect(Json& value, std::vector<Json*>& out) {
  out.push_back(&value);
  if (value.is_array()) {
    for (Json& item : value.as_array()) collect(item, out);
  }
  if (value.is_object()) {
    for (auto& [name, member] : value.as_object()) collect(member, out);
  }
}

// Replaces a value anywhere in the document by an odd one, by another part of it, or by less.
void damage(Json& document, std::mt19937& random) {
  std::vector<Json*> places;
  collect(document, places);
  Json& at = *places[random() % places.size()];
  const std::size_t kind = random() % 4;
  if (kind == 0) {
    const Json other = *places[random() % places.size()];
    at = other;
  } else if (kind == 1 && at.is_object() && !at.as_object().empty()) {
    at.as_object().erase(at.as_object().begin() +
                         static_cast<std::ptrdiff_t>(random() % at.as_object().size()));
  } else if (kind == 2 && at.is_array() && !at.as_array().empty()) {
    at.as_array().pop_back();
  } else {
    at = odd_values()[random() % odd_values().size()];
  }
}

bool reads_back(const std::string& yaml, const Json& study) {
  const api::ReadYaml read = api::read_yaml(yaml);
  return read.errors.empty() && read.documents.size() == 1 && read.documents[0].value() == study;
}

// Returns whether there is a Study.
bool check(const Json& document, std::optional<std::int64_t> steps) {
  const KatibOptions options{steps, [&](const std::string&, const std::string&) {
                               return std::optional(document.dump());
                             }};
  const Conversion done = convert_katib(document, options);
  if (!done.errors.empty()) return false;
  EXPECT_TRUE(reads_back(commented_yaml(done.study, done.notes), done.study))
      << commented_yaml(done.study, done.notes);
  return true;
}

TEST(ConvertFuzz, DamagedFieldsNeverCrash) {
  std::mt19937 random(1);
  int studies = 0;
  for (const std::string& text : examples()) {
    const Json good = api::read_yaml(text).documents.at(0).value();
    for (int i = 0; i < 300; ++i) {
      Json document = good;
      const std::size_t times = 1 + random() % 3;
      for (std::size_t k = 0; k < times; ++k) damage(document, random);
      studies += check(document, i % 3 == 0 ? std::optional<std::int64_t>(9) : std::nullopt);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(studies, 1000) << "most damage is small enough to get through";
}

TEST(ConvertFuzz, DamagedTextNeverCrashes) {
  std::mt19937 random(2);
  const std::string bytes = "\n\t :-[]{}#&*!|>'\"%@`\x01\xc3(0";
  for (const std::string& text : examples()) {
    for (int i = 0; i < 100; ++i) {
      std::string damaged = text;
      for (int k = 0; k < 3; ++k) {
        const std::size_t at = random() % damaged.size();
        if (random() % 2 == 0) {
          damaged[at] = bytes[random() % bytes.size()];
        } else {
          damaged.erase(at, 1 + random() % 40);
        }
        if (damaged.empty()) damaged = "x";
      }
      const SourceDocuments read = read_documents(damaged, "x.yaml");
      const ConvertedStudies done = convert_documents(read.documents, std::nullopt);
      for (const ConvertedStudy& study : done.studies) {
        ASSERT_TRUE(api::read_yaml(study.yaml).errors.empty()) << study.yaml;
      }
    }
  }
}

TEST(ConvertFuzz, AnyJsonIsRefusedInWords) {
  for (const Json& value : odd_values()) {
    EXPECT_FALSE(convert_katib(value, {}).errors.empty()) << value.dump();
  }
}

}  // namespace
}  // namespace fettle::cli
