// Whole documents by their field lists (field.h), for readers that want one Error instead of many
// FieldErrors. Pure; usable from any thread.
#pragma once

#include <utility>

#include "api/fields/field_reader.h"
#include "base/result.h"

namespace fettle::api {

// Reads a struct; the error lists every wrong field, one a line.
template <class Struct>
Result<Struct> read_document(const Json& document,
                             UnknownFields unknown = UnknownFields::kMistakes) {
  Struct out;
  FieldErrors errors(unknown);
  read_struct(document, FieldPath(), out, errors);
  if (!errors.empty()) return invalid(to_string(std::move(errors).take()));
  return out;
}

}  // namespace fettle::api
