#include "api/yaml/study_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/fields/field.h"
#include "api/study/study_json.h"
#include "api/yaml/yaml_reader.h"
#include "base/file.h"

namespace fettle::api {
namespace {

class Loader {
 public:
  explicit Loader(const std::string& file) : file_(file) {}

  LoadedFile load(std::string_view text) {
    if (const auto error = find_foreign_byte(text)) {
      complain(error->place, "", error->message);
      return std::move(out_);
    }
    const ReadYaml yaml = read_yaml(text);
    for (const YamlError& error : yaml.errors) complain(error.place, "", error.message);
    // After a broken document, the rest may not mean what its author intended.
    if (!yaml.errors.empty()) return std::move(out_);
    if (yaml.documents.empty()) complain({}, "", "holds no Study; it is empty");
    if (yaml.documents.size() > kMaxStudiesPerFile) {
      complain({}, "",
               "holds " + std::to_string(yaml.documents.size()) + " documents, expected at most " +
                   std::to_string(kMaxStudiesPerFile));
      return std::move(out_);
    }
    for (const YamlDocument& document : yaml.documents) read(document);
    return std::move(out_);
  }

  LoadedFile fail(const std::string& message) {
    complain({}, "", message);
    return std::move(out_);
  }

 private:
  void complain(const LineColumn& place, const std::string& path, const std::string& message) {
    out_.diagnostics.push_back({file_, place.line, place.column, path, message});
  }

  void read(const YamlDocument& document) {
    ReadStudy read = read_study(document.value());
    const std::size_t before = out_.diagnostics.size();
    for (const FieldError& error : read.errors) {
      // The last error may only count the omitted errors.
      const bool is_count =
          error.path.empty() && &error == &read.errors.back() && read.errors.size() > 1;
      // LineColumn{} is the file as a whole, which is sorted last.
      complain(is_count ? LineColumn{} : document.find(error.path), error.path, error.message);
    }
    std::stable_sort(
        out_.diagnostics.begin() + static_cast<std::ptrdiff_t>(before), out_.diagnostics.end(),
        [](const Diagnostic& a, const Diagnostic& b) { return order_of(a) < order_of(b); });
    if (!read.errors.empty()) return;
    if (!names_.insert(read.study.metadata.name).second) {
      complain(document.find("metadata.name"), "metadata.name",
               "found the name of an earlier Study in this file; expected distinct names");
      return;
    }
    warn_of_values(document, read.study);
    out_.studies.push_back(std::move(read.study));
    out_.documents.push_back(document.value());
  }

  // Warns of `values: [on, off, 010]`: the program, too, gets true, false and 8.
  void warn_of_values(const YamlDocument& document, const Study& study) {
    for (std::size_t i = 0; i < study.spec.parameters.size(); ++i) {
      const Parameter& parameter = study.spec.parameters[i];
      for (std::size_t j = 0; j < parameter.values.size(); ++j) {
        const std::string path =
            "spec.parameters[" + std::to_string(i) + "].values[" + std::to_string(j) + "]";
        const std::string written = document.surprising_at(path);
        if (written.empty()) continue;
        const LineColumn place = document.find(path);
        const std::string means = parameter.values[j].dump();
        out_.warnings.push_back({file_, place.line, place.column, path,
                                 "YAML takes " + written + " for " + means +
                                     "; if a text is meant, write \"" + written + "\", else " +
                                     means});
      }
    }
  }

  // Orders by place; the file as a whole last.
  static std::pair<unsigned, int> order_of(const Diagnostic& diagnostic) {
    // Line 0, the file as a whole, wraps around to the largest number.
    return {static_cast<unsigned>(diagnostic.line) - 1U, diagnostic.column};
  }

  std::string file_;
  std::set<std::string> names_;
  LoadedFile out_;
};

}  // namespace

LoadedFile load_study_text(std::string_view text, const std::string& file) {
  Loader loader(file);
  if (text.size() > kMaxStudyFileBytes) {
    return loader.fail("is larger than " + std::to_string(kMaxStudyFileBytes) +
                       " bytes, which is the most that a Study may have");
  }
  return loader.load(text);
}

LoadedFile load_study_file(const std::string& path) {
  // read_file refuses a larger file in its own words.
  Result<std::string> text = read_file(path, kMaxStudyFileBytes);
  if (!text) return Loader(path).fail(text.error().message);
  return load_study_text(*text, path);
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string out = diagnostic.file;
  if (diagnostic.line > 0) {
    out += ':' + std::to_string(diagnostic.line) + ':' + std::to_string(diagnostic.column);
  }
  out += ": ";
  if (!diagnostic.path.empty()) out += diagnostic.path + ": ";
  return out + diagnostic.message;
}

}  // namespace fettle::api
