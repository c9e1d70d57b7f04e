#include "cli/convert/documents.h"

#include <algorithm>
#include <utility>

namespace fettle::cli {
namespace {

constexpr std::size_t kMostDocuments = 1000;

bool is_list(const Json& document) {
  const Json* kind = document.find("kind");
  const Json* items = document.find("items");
  return kind != nullptr && kind->is_string() && kind->as_string().ends_with("List") &&
         items != nullptr && items->is_array();
}

void add(const api::YamlDocument& yaml, const std::string& file, SourceDocuments& out) {
  const auto shared = std::make_shared<const api::YamlDocument>(yaml);
  const Json& value = yaml.value();
  if (!is_list(value)) {
    out.documents.push_back({file, value, shared, ""});
    return;
  }
  const Json::Array& items = value.find("items")->as_array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    out.documents.push_back({file, items[i], shared, "items[" + std::to_string(i) + "]"});
  }
}

std::string text_at(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* found = &value;
  for (const std::string_view name : path) {
    found = found == nullptr ? nullptr : found->find(name);
  }
  return found != nullptr && found->is_string() ? found->as_string() : "";
}

}  // namespace

api::Diagnostic SourceDocument::at(const std::string& path, const std::string& message) const {
  const std::string dot = prefix.empty() || path.empty() ? "" : ".";
  const std::string whole = prefix + dot + path;
  const api::LineColumn place = yaml->find(whole);
  return {file, place.line, place.column, whole, message};
}

SourceDocuments read_documents(std::string_view text, const std::string& file) {
  SourceDocuments out;
  const auto complain = [&](const api::LineColumn& place, const std::string& message) {
    out.diagnostics.push_back({file, place.line, place.column, "", message});
  };
  if (text.size() > api::kMaxStudyFileBytes) {
    complain({}, "is larger than " + std::to_string(api::kMaxStudyFileBytes) +
                     " bytes, which is the most that is read");
    return out;
  }
  if (const auto error = api::find_foreign_byte(text)) {
    complain(error->place, error->message);
    return out;
  }
  const api::ReadYaml yaml = api::read_yaml(text);
  for (const api::YamlError& error : yaml.errors) complain(error.place, error.message);
  if (!yaml.errors.empty()) return out;
  for (const api::YamlDocument& document : yaml.documents) add(document, file, out);
  if (out.documents.empty()) complain({}, "holds no document; it is empty");
  if (out.documents.size() > kMostDocuments) {
    complain({}, "holds " + std::to_string(out.documents.size()) + " documents, expected at most " +
                     std::to_string(kMostDocuments));
    out.documents.clear();
  }
  return out;
}

bool is_config_map(const Json& document) { return text_at(document, {"kind"}) == "ConfigMap"; }

std::optional<std::string> find_config_map(const std::vector<SourceDocument>& documents,
                                           const std::string& name, const std::string& key) {
  for (const SourceDocument& document : documents) {
    if (!is_config_map(document.value)) continue;
    if (text_at(document.value, {"metadata", "name"}) != name) continue;
    const Json* data = document.value.find("data");
    const Json* text = data == nullptr ? nullptr : data->find(key);
    if (text != nullptr && text->is_string()) return text->as_string();
  }
  return std::nullopt;
}

}  // namespace fettle::cli
