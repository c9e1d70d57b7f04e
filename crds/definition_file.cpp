#include "crds/definition_file.h"

#include "api/yaml/yaml_reader.h"
#include "base/file.h"
#include "crds/definition.h"

namespace fettle::crds {
namespace {

Result<Json> read_rules(const std::string& path) {
  FETTLE_ASSIGN(const std::string text, read_file(path));
  const api::ReadYaml yaml = api::read_yaml(text);
  if (!yaml.errors.empty()) {
    const api::YamlError& error = yaml.errors.front();
    return invalid(path + ':' + std::to_string(error.place.line) + ": " + error.message);
  }
  if (yaml.documents.size() != 1 || !yaml.documents[0].value().is_object()) {
    return invalid(path + ": expected one map");
  }
  return yaml.documents[0].value();
}

}  // namespace

const std::array<DefinitionFile, 2> kDefinitionFiles{{
    {"studies.yaml", "rules/study.yaml", study_definition},
    {"trials.yaml", "rules/trial.yaml", trial_definition},
}};

Result<std::string> generate(const DefinitionFile& file, const std::string& directory) {
  const std::string path = directory + '/' + file.rules;
  FETTLE_ASSIGN(const Json rules, read_rules(path));
  Result<Json> definition = file.define(rules);
  if (!definition) return Error(definition.error()).in(path);
  std::string text = definition_text(*definition);
  if (text.size() > kLargestDefinition) {
    return invalid(path + ": makes " + std::to_string(text.size()) + " bytes, expected at most " +
                   std::to_string(kLargestDefinition));
  }
  return text;
}

}  // namespace fettle::crds
