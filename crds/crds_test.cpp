// The committed definitions, and the properties of every schema in them.
#include <gtest/gtest.h>

#include <string>

#include "api/yaml/yaml_reader.h"
#include "base/file.h"
#include "base/test_paths.h"
#include "crds/definition_file.h"

namespace fettle::crds {
namespace {

const std::string kDirectory = source_path("crds");

class Definition : public ::testing::TestWithParam<DefinitionFile> {
 protected:
  void SetUp() override {
    const Result<std::string> text = read_file(kDirectory + '/' + GetParam().name);
    ASSERT_TRUE(text.ok()) << text.error().message;
    text_ = *text;
    const api::ReadYaml yaml = api::read_yaml(text_);
    ASSERT_TRUE(yaml.errors.empty()) << yaml.errors[0].message;
    const Json& version = yaml.documents[0].value().find("spec")->find("versions")->as_array()[0];
    schema_ = *version.find("schema")->find("openAPIV3Schema");
  }

  std::string text_;
  Json schema_;
};

// Calls `check` for every schema below `schema`, with its place.
template <class Check>
void visit_schemas(const Json& schema, const std::string& place, const Check& check) {
  check(schema, place);
  if (const Json* properties = schema.find("properties")) {
    for (const auto& [name, field] : properties->as_object()) {
      visit_schemas(field, place + '.' + name, check);
    }
  }
  if (const Json* items = schema.find("items")) visit_schemas(*items, place + "[]", check);
  if (const Json* values = schema.find("additionalProperties")) {
    visit_schemas(*values, place + "{}", check);
  }
}

TEST_P(Definition, MatchesTheGeneratorsOutput) {
  const Result<std::string> made = generate(GetParam(), kDirectory);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(*made == text_) << "crds/" << GetParam().name << " is out of date: make crds";
}

TEST_P(Definition, DescribesEveryField) {
  visit_schemas(schema_, "", [](const Json& schema, const std::string& place) {
    EXPECT_NE(schema.find("description"), nullptr) << place;
  });
}

// Without bounds, the cost of a rule is unbounded, and the API server refuses it.
TEST_P(Definition, BoundsEveryListMapAndText) {
  visit_schemas(schema_, "", [](const Json& schema, const std::string& place) {
    const Json* type = schema.find("type");
    const bool is_root = place.find('.', 1) == std::string::npos;
    if (type == nullptr || is_root) return;
    if (*type == Json("array")) {
      EXPECT_NE(schema.find("maxItems"), nullptr) << place;
      EXPECT_NE(schema.find("x-kubernetes-list-type"), nullptr) << place;
    }
    if (*type == Json("string") && schema.find("enum") == nullptr) {
      EXPECT_NE(schema.find("maxLength"), nullptr) << place;
    }
    if (schema.find("additionalProperties") != nullptr) {
      EXPECT_NE(schema.find("maxProperties"), nullptr) << place;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, Definition, ::testing::ValuesIn(kDefinitionFiles), [](const auto& test) {
  return std::string(test.param.name).substr(0, std::string(test.param.name).find('.'));
});

// A dot of the path matches only a dot: "modelXlayers[0].units" is no field.
TEST(Rules, TakeThePathsOfTheTrainerLiterally) {
  const Result<std::string> made = generate(kDefinitionFiles[0], kDirectory);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_NE(made->find(R"('^model\\\\.layers\\\\[[0-9]+\\\\]\\\\.units$')"), std::string::npos);
}

TEST(Rules, ThatNameNoPlaceAreRefused) {
  const Json place = Json::object({{"spec.nowhere[].x", Json::object()}});
  const Result<Json> made = kDefinitionFiles[0].define(Json::object({{"schema", place}}));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "schema: spec.nowhere[].x: there is no nowhere");
}

}  // namespace
}  // namespace fettle::crds
