// CustomResourceDefinitions of Study and Trial: schemas from the field lists of api/, and the parts
// written by hand in crds/rules: names, columns, longer descriptions, and rules across fields.
// Pure; usable from any thread.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace fettle::crds {

// Clients that keep a copy in an annotation could not apply a larger one.
inline constexpr std::size_t kLargestDefinition = 256 * 1024;

// `rules`: a document of crds/rules. Its `names`, `additionalPrinterColumns` ... are copied
// unchanged; `schema` maps places ("spec.parameters[].when") to additions. Errors: a place that the
// schema does not have.
Result<Json> study_definition(const Json& rules);
Result<Json> trial_definition(const Json& rules);

// Returns the text of the file: a comment that states its origin, then YAML.
std::string definition_text(const Json& definition);

}  // namespace fettle::crds
