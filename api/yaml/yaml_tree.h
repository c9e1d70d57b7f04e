// YamlNode: a YAML document as written, aliases shared and not yet expanded. Built by
// yaml_reader.cpp; never changed afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/yaml/yaml_reader.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

struct YamlEntry {
  std::string key;     // of a map
  bool merge = false;  // a plain <<
  LineColumn place;    // of the key; in a list, of the item
  std::shared_ptr<const YamlNode> value;
};

struct YamlNode {
  enum class Kind { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  LineColumn place;
  Json scalar;
  std::string surprising;          // text of a scalar that only YAML 1.1 makes a switch or a number
  std::vector<YamlEntry> entries;  // of lists and maps
};

// Expands aliases and merge keys. Appends an error for each that cannot be expanded.
Json expand(const YamlNode& root, std::vector<YamlError>& errors);

// See YamlDocument::find.
LineColumn find_place(const YamlNode& root, std::string_view path);
// Returns the node at `path`, or nullptr.
const YamlNode* find_node(const YamlNode& root, std::string_view path);

}  // namespace fettle::api
