#include "api/study/study_json.h"

#include <utility>

#include "api/fields/field_reader.h"
#include "api/fields/field_writer.h"
#include "api/study/check.h"
#include "api/study/study_fields.h"

namespace fettle::api {

namespace {

// Refuses a document of another kind; reading it would only list fields that a Study lacks.
bool is_another_kind(const Json& document, FieldErrors& errors) {
  if (!document.is_object()) {
    errors.add("", "found " + describe(document) +
                       ", expected a Study: a map with apiVersion, kind, metadata and spec");
    return true;
  }
  const Json* kind = document.find("kind");
  if (kind == nullptr || *kind == Json("Study")) return false;
  errors.add("kind", "found " + describe(*kind) + ", expected Study");
  return true;
}

}  // namespace

ReadStudy read_study(const Json& document, UnknownFields unknown) {
  ReadStudy out;
  FieldErrors errors(unknown);
  if (!is_another_kind(document, errors)) {
    read_struct(document, FieldPath(), out.study, errors);
    const Json* spec = document.find("spec");
    // Without a spec every check would fail; a local store was checked when it was written.
    const bool checks = spec != nullptr && spec->is_object() && errors.checks_bounds();
    if (checks) check_study(out.study, errors);
  }
  out.errors = std::move(errors).take();
  return out;
}

Json write_study(const Study& study) { return write_struct(study); }
Json write_study_spec(const StudySpec& spec) { return write_struct(spec); }
Json write_study_status(const StudyStatus& status) { return write_struct(status); }

}  // namespace fettle::api
