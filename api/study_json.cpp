#include "api/study_json.h"

#include <utility>

#include "api/check.h"
#include "api/field_reader.h"
#include "api/field_writer.h"
#include "api/study_fields.h"

namespace fettle::api {

ReadStudy read_study(const Json& document) {
  ReadStudy out;
  FieldErrors errors;
  read_struct(document, FieldPath(), out.study, errors);
  if (document.is_object()) check_study(out.study, errors);
  out.errors = std::move(errors).take();
  return out;
}

Json write_study(const Study& study) { return write_struct(study); }
Json write_study_spec(const StudySpec& spec) { return write_struct(spec); }
Json write_study_status(const StudyStatus& status) { return write_struct(status); }

}  // namespace fettle::api
