#include "cli/convert/convert_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cli/convert/commented_yaml.h"
#include "cli/convert/katib.h"

namespace fettle::cli {
namespace {

std::string name_of(const Json& study) {
  const Json* name = study.find("metadata")->find("name");
  return name != nullptr && name->is_string() ? name->as_string() : "";
}

ConvertedStudy write(const SourceDocument& from, const Conversion& done) {
  ConvertedStudy out{from.file, name_of(done.study), "", {}};
  out.yaml = comment_lines(
                 "Converted from the Experiment " + out.name + " of Katib by fettle convert.", 0) +
             commented_yaml(done.study, done.notes);
  for (const Note& note : done.notes)
    out.notes.push_back(from.at(note.source, "note: " + note.text));
  return out;
}

}  // namespace

ConvertedStudies convert_documents(const std::vector<SourceDocument>& documents,
                                   std::optional<std::int64_t> steps) {
  ConvertedStudies out;
  std::set<std::string> names;
  const KatibOptions options{steps, [&](const std::string& name, const std::string& key) {
                               return find_config_map(documents, name, key);
                             }};
  for (const SourceDocument& document : documents) {
    if (is_config_map(document.value)) continue;
    const Conversion done = convert_katib(document.value, options);
    for (const api::FieldError& error : done.errors) {
      out.errors.push_back(document.at(error.path, error.message));
    }
    if (!done.errors.empty()) continue;
    ConvertedStudy study = write(document, done);
    if (names.insert(study.name).second) {
      out.studies.push_back(std::move(study));
    } else {
      out.errors.push_back(document.at(
          "metadata.name", "found the name of an earlier Experiment; expected distinct names"));
    }
  }
  if (out.studies.empty() && out.errors.empty() && !documents.empty()) {
    out.errors.push_back(documents[0].at("kind", "found ConfigMaps alone; expected an Experiment"));
  }
  return out;
}

}  // namespace fettle::cli
