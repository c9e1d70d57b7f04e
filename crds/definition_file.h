// The files of crds/: their list, and their text regenerated from the rules beside them. Reads
// files; otherwise pure.
#pragma once

#include <array>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace fettle::crds {

struct DefinitionFile {
  const char* name;   // "studies.yaml"
  const char* rules;  // "rules/study.yaml"
  Result<Json> (*define)(const Json& rules);
};

extern const std::array<DefinitionFile, 2> kDefinitionFiles;

// Returns the text of the file, from the rules in `directory`. Errors: rules that cannot be read or
// that name places which the schema does not have, and a text too large to be applied.
Result<std::string> generate(const DefinitionFile& file, const std::string& directory);

}  // namespace fettle::crds
