// CustomResourceDefinitions of Study and Trial: schemas from the field lists of api/, and what is
// written by hand in crds/rules: names, columns, longer descriptions, and rules across fields.
// Pure; usable from any thread.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace fettle::crds {

// Larger ones could not be applied by clients that keep a copy in an annotation.
inline constexpr std::size_t kLargestDefinition = 256 * 1024;

// `rules`: a document of crds/rules. Its `names` and `additionalPrinterColumns` ... are taken as
// they are; `schema` is a map from places ("spec.parameters[].when") to what is added there. An
// error names a place that the schema does not have.
Result<Json> study_definition(const Json& rules);
Result<Json> trial_definition(const Json& rules);

// The file: a comment that says where it comes from, then YAML.
std::string definition_text(const Json& definition);

}  // namespace fettle::crds
