// to_yaml(): JSON as YAML for people to read and to paste into study files. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace fettle::api {

// Layout of a list of maps: a line for each map, or a line for each of its fields.
enum class YamlLists { kLineEach, kLineEachField };

// Writes `value` as block-style YAML, every line indented by `indent` spaces and ended by a line
// break. Lists of plain values stand on one line. Strings that YAML would read as something else
// are quoted.
std::string to_yaml(const Json& value, int indent, YamlLists lists = YamlLists::kLineEach);

// Writes `value` in flow style on one line, without a line break: {min: 0, values: [a, "on"]}.
std::string to_flow_yaml(const Json& value);

}  // namespace fettle::api
