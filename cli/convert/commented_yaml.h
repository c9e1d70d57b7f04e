// commented_yaml(): a converted document as YAML, each note a comment above the field that it is
// about. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/convert/conversion.h"

namespace fettle::cli {

// Small maps and lists stand on one line, all else is in block style. A note about a field that
// does not exist stands above the innermost field around it.
std::string commented_yaml(const Json& document, const std::vector<Note>& notes);

// `text` as lines of a comment of at most 100 columns, each with `indent` spaces and "# ".
std::string comment_lines(const std::string& text, int indent);

}  // namespace fettle::cli
