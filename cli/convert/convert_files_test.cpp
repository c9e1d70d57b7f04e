// Files with several documents, lists and ConfigMaps; places in them.
#include "cli/convert/convert_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/convert/testing/test_experiments.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;

std::string diagnostics(const std::vector<api::Diagnostic>& all) {
  std::string out;
  for (const api::Diagnostic& one : all) out += api::to_string(one) + '\n';
  return out;
}

// Errors of reading and of converting.
std::string errors_of(const std::string& text) {
  const SourceDocuments read = read_documents(text, "x.yaml");
  return diagnostics(read.diagnostics) +
         diagnostics(convert_documents(read.documents, std::nullopt).errors);
}

std::string named(const std::string& name) {
  Json document = experiment();
  document.find("metadata")->set("name", name);
  return document.dump() + '\n';
}

TEST(ConvertFiles, EveryDocumentIsAStudy) {
  const SourceDocuments read = read_documents(named("a") + "---\n" + named("b"), "x.yaml");
  const ConvertedStudies done = convert_documents(read.documents, std::nullopt);
  ASSERT_EQ(done.studies.size(), 2U) << diagnostics(done.errors);
  EXPECT_EQ(done.studies[1].name, "b");
  EXPECT_THAT(errors_of(named("a") + "---\n" + named("a")), HasSubstr("expected distinct names"));
}

TEST(ConvertFiles, ListsOfKubectlAreReadAndPlacesAreInTheFile) {
  const std::string list = "apiVersion: v1\nkind: List\nitems:\n- " + named("a") +
                           "- kind: Experiment\n  apiVersion: kubeflow.org/v1\n";
  const SourceDocuments read = read_documents(list, "x.yaml");
  const ConvertedStudies done = convert_documents(read.documents, std::nullopt);
  EXPECT_EQ(done.studies.size(), 1U);
  EXPECT_THAT(diagnostics(done.errors), HasSubstr("x.yaml:6:3: items[1].apiVersion: found"));
}

TEST(ConvertFiles, ATemplateIsReadFromAConfigMapBesideIt) {
  Json document = experiment();
  Json& trial = *document.find("spec")->find("trialTemplate");
  const std::string job = trial.find("trialSpec")->dump();
  trial.erase("trialSpec");
  trial.set("configMap", yaml("{configMapName: templates, templatePath: job.yaml}"));
  Json map = yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: templates}}");
  map.set("data", Json::object({{"job.yaml", job}, {"bad.yaml", "a: ["}}));
  const std::string beside = "\n---\n" + map.dump();
  EXPECT_EQ(errors_of(document.dump() + beside), "");
  EXPECT_THAT(errors_of(document.dump()), HasSubstr("kubectl get configmap templates"));
  trial.find("configMap")->set("templatePath", "bad.yaml");
  EXPECT_THAT(errors_of(document.dump() + beside), HasSubstr("is not one YAML document"));
  EXPECT_THAT(errors_of(map.dump()), HasSubstr("found ConfigMaps alone"));
}

TEST(ConvertFiles, BadFilesAreRefusedWithTheirPlace) {
  EXPECT_THAT(errors_of(""), HasSubstr("holds no document; it is empty"));
  EXPECT_THAT(errors_of("a: ["), HasSubstr("x.yaml:"));
  EXPECT_THAT(errors_of("%PDF \x01"), HasSubstr("x.yaml:1:6: found a byte that is a control"));
  EXPECT_THAT(errors_of(std::string(2'000'000, '[')), HasSubstr("is larger than 1000000 bytes"));
  EXPECT_THAT(errors_of("- 1\n"), HasSubstr("expected Experiment"));
  EXPECT_THAT(errors_of("kind: Pod\n"), HasSubstr("x.yaml:1:1: kind: found \"Pod\""));
}

}  // namespace
}  // namespace fettle::cli
