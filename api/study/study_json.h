// Study from and to JSON, the form on the wire. api/yaml reads YAML.
//
// The fields, their bounds and descriptions are listed once, in study_fields.h and
// trainer_fields.h. Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/fields/field_errors.h"
#include "api/study/study.h"
#include "base/json.h"

namespace fettle::api {

struct ReadStudy {
  Study study;                     // valid if and only if `errors` is empty
  std::vector<FieldError> errors;  // all of them, at most kMaxErrors (field_errors.h) and a count
};

// Reads a whole document (apiVersion, kind, metadata, spec, status), fills in defaults and checks
// everything that can be checked without data or a cluster.
ReadStudy read_study(const Json& document, UnknownFields unknown = UnknownFields::kMistakes);

// read_study(write_study(x)) gives x for every valid x.
Json write_study(const Study& study);
Json write_study_spec(const StudySpec& spec);
Json write_study_status(const StudyStatus& status);

}  // namespace fettle::api
