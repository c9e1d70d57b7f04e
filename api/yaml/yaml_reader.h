// YAML read into JSON, the way kubectl reads it, with the place of every field.
//
// Plain scalars mean what sigs.k8s.io/yaml makes of them (YAML 1.1): yes, no, on and off are
// booleans, 0x10, 0o17, 017 and 1_000 are integers, ~ is null; quoted ones are texts. Anchors,
// aliases and merge keys work, within kMaxExpandedBytes. Every failure is one sentence with its
// place. Exceptions of yaml-cpp end here (yaml_reader.cpp). Pure; usable from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace fettle::api {

inline constexpr int kMaxYamlDepth = 64;
// What all aliases of a document may expand to: its texts and 32 bytes for each value.
inline constexpr std::size_t kMaxExpandedBytes = 16'000'000;

// A place in a text; both count from 1. 0 = the text as a whole.
struct LineColumn {
  int line = 0;
  int column = 0;
  bool operator==(const LineColumn&) const = default;
};

struct YamlError {
  LineColumn place;
  std::string message;
};

struct YamlNode;  // the document as it was written (yaml_tree.h)

class YamlDocument {
 public:
  YamlDocument(std::shared_ptr<const YamlNode> root, Json value);

  const Json& value() const { return value_; }
  // Where the field at `path` ("spec.parameters[2].min") is written; of a field that is missing,
  // the innermost one around it that is there.
  LineColumn find(std::string_view path) const;
  // How the scalar at `path` is written, if only YAML 1.1 makes a switch or a number of it: on, no,
  // 010, 0x10, 1_000; "" otherwise.
  std::string surprising_at(std::string_view path) const;

 private:
  std::shared_ptr<const YamlNode> root_;
  Json value_;
};

struct ReadYaml {
  std::vector<YamlDocument> documents;  // empty ones are left out
  std::vector<YamlError> errors;        // the documents before the first error may still be there
};

ReadYaml read_yaml(std::string_view text);

// A plain scalar as JSON. Errors: a number outside the range of a double.
Result<Json> resolve_plain_scalar(std::string_view text);

// Whether people may take the plain scalar `text`, which means `value`, for a text.
bool is_surprising(std::string_view text, const Json& value);

}  // namespace fettle::api
