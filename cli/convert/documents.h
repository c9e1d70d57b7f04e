// The documents of a YAML file that a conversion starts from: several in one file, lists as kubectl
// prints them, and the ConfigMaps beside them.
//
// Pure; usable from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/yaml/study_file.h"
#include "api/yaml/yaml_reader.h"
#include "base/json.h"

namespace fettle::cli {

struct SourceDocument {
  std::string file;
  Json value;
  std::shared_ptr<const api::YamlDocument> yaml;  // the document around it
  std::string prefix;                             // path of `value` in it: "" or "items[2]"

  // A diagnostic about the field at `path` of `value`.
  api::Diagnostic at(const std::string& path, const std::string& message) const;
};

struct SourceDocuments {
  std::vector<SourceDocument> documents;
  std::vector<api::Diagnostic> diagnostics;
};

// Reads a text; diagnostics name it `file`.
SourceDocuments read_documents(std::string_view text, const std::string& file);

bool is_config_map(const Json& document);
// The text at `key` of the ConfigMap `name` among the documents.
std::optional<std::string> find_config_map(const std::vector<SourceDocument>& documents,
                                           const std::string& name, const std::string& key);

}  // namespace fettle::cli
