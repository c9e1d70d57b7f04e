// YAML read into JSON as kubectl reads it, with the place of every field.
//
// Plain scalars have the types of sigs.k8s.io/yaml (YAML 1.1): yes, no, on and off are booleans,
// 0x10, 0o17, 017 and 1_000 are integers, ~ is null; quoted scalars are texts. Anchors, aliases and
// merge keys work, within kMaxExpandedBytes. Every failure is one sentence with its place.
// Exceptions of yaml-cpp end here (yaml_reader.cpp). Pure; usable from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace fettle::api {

inline constexpr int kMaxYamlDepth = 64;
// Bytes to which all aliases of a document may expand: its texts, and 32 for each value.
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
  // Returns the place of the field at `path` ("spec.parameters[2].min"); of a missing field, that
  // of the innermost field around it that exists.
  LineColumn find(std::string_view path) const;
  // Returns the scalar at `path` as written, if only YAML 1.1 makes a switch or a number of it: on,
  // no, 010, 0x10, 1_000; "" otherwise.
  std::string surprising_at(std::string_view path) const;

 private:
  std::shared_ptr<const YamlNode> root_;
  Json value_;
};

struct ReadYaml {
  std::vector<YamlDocument> documents;  // empty documents are left out
  std::vector<YamlError> errors;        // documents before the first error may be present
};

// `text` must have passed find_foreign_byte(), or come from a document that has.
ReadYaml read_yaml(std::string_view text);

// Accepts UTF-8 text without control characters; anything else is another kind of file, and the
// error says where that shows.
std::optional<YamlError> find_foreign_byte(std::string_view text);

// Resolves a plain scalar to JSON. Errors: a number outside the range of a double.
Result<Json> resolve_plain_scalar(std::string_view text);

// Whether people may take the plain scalar `text`, with this `value`, for a text.
bool is_surprising(std::string_view text, const Json& value);

}  // namespace fettle::api
