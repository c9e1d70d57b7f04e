// JSON as YAML that people read, and paste into study files. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace fettle::api {

// How a list of maps is written: a line for each map, or a line for each of its fields.
enum class YamlLists { kLineEach, kLineEachField };

// `value` as block-style YAML, every line indented by `indent` spaces and ended by a line break.
// Lists of plain values are written on one line. Strings that YAML would read as something else are
// quoted.
std::string to_yaml(const Json& value, int indent, YamlLists lists = YamlLists::kLineEach);

}  // namespace fettle::api
