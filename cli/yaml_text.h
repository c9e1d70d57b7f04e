// JSON as YAML that people can paste into a study file. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace fettle::cli {

// `value` as block-style YAML, every line indented by `indent` spaces and ended by a line break.
// Lists and whatever lies in them are written on one line each. Strings that YAML would read as
// something else are quoted.
std::string to_yaml(const Json& value, int indent);

}  // namespace fettle::cli
