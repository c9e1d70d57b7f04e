// The result of a conversion, with notes on its losses.
//
// Value types: safe to share while no thread changes them.
#pragma once

#include <string>
#include <vector>

#include "api/fields/field_error.h"
#include "base/json.h"

namespace fettle::cli {

// A loss, or a choice that its reader should look at. It becomes a line on standard error and a
// comment in the Study.
struct Note {
  std::string source;  // path in the document that was converted, "spec.objective.goal"
  std::string target;  // path in the Study, "spec.objectives[0].goal"; it need not exist
  std::string text;
  bool operator==(const Note&) const = default;
};

struct Conversion {
  Json study;  // meaningless if there are errors
  std::vector<Note> notes;
  std::vector<api::FieldError> errors;  // why there is no Study; paths in the source document
};

}  // namespace fettle::cli
