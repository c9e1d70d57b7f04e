// FieldReader: reads a JSON object into a struct by its field list (field.h).
//
// Every wrong field becomes one FieldError; its member keeps its default, so that reading continues
// and the rest is checked too. A field that is null counts as left out, as on the Kubernetes API
// server. A reader lives as long as one object is read. Not synchronised.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/fields/field.h"
#include "api/fields/field_errors.h"
#include "base/json.h"

namespace fettle::api {

// A value to read, its path and rules, and the list that gets its errors.
struct ReadContext {
  const Json& value;
  const FieldPath& path;
  const FieldRules& rules;
  FieldErrors& errors;
};

// One overload for each type of field. Each either sets `out` or adds errors.
void read_value(const ReadContext& context, bool& out);
void read_value(const ReadContext& context, std::int64_t& out);
void read_value(const ReadContext& context, double& out);
void read_value(const ReadContext& context, std::string& out);
void read_value(const ReadContext& context, Json& out);
void read_value(const ReadContext& context, std::map<std::string, std::string>& out);
void read_value(const ReadContext& context, std::map<std::string, double>& out);
// Returns the place of value in `names`; nullopt, and an error, unless it is a text among them.
std::optional<std::size_t> read_choice(const ReadContext& context,
                                       const std::vector<std::string_view>& names);
// Whether the value is a list (map) within the rules' bounds; else adds an error.
bool check_list(const ReadContext& context);
bool check_map(const ReadContext& context);

template <NamedEnum E>
void read_value(const ReadContext& context, E& out) {
  std::vector<std::string_view> names;
  for (const EnumName<E>& entry : enum_names<E>()) names.push_back(entry.name);
  if (const auto index = read_choice(context, names)) out = enum_names<E>()[*index].value;
}

template <class Struct>
requires std::is_class_v<Struct>
void read_value(const ReadContext& context, Struct& out);

template <class T>
void read_value(const ReadContext& context, std::optional<T>& out) {
  if (context.value.is_null()) return;
  read_value(context, out.emplace());
}

template <class T>
void read_value(const ReadContext& context, std::vector<T>& out) {
  if (!check_list(context)) return;
  const Json::Array& items = context.value.as_array();
  out.clear();
  out.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const FieldPath path = context.path.item(i);
    read_value(ReadContext{items[i], path, context.rules, context.errors}, out[i]);
  }
}

class FieldReader {
 public:
  FieldReader(const Json& object, const FieldPath& path, FieldErrors& errors)
      : object_(object), path_(path), errors_(errors), errors_before_(errors.size()) {}

  template <class T>
  void field(std::string_view name, T& member, std::string_view description,
             const FieldRules& rules = {}) {
    const std::string_view spelt = errors_.spelt(name);
    if (const Json* value = present(spelt, description, rules)) {
      const FieldPath path = path_.member(spelt);
      read_value(ReadContext{*value, path, rules, errors_}, member);
    }
  }

  // Reads a field that must have this text.
  void constant(std::string_view name, std::string_view text);
  // Accepts a field of Kubernetes that Fettle does not use.
  void ignored(std::string_view name) { known_.push_back(name); }
  // Call last: adds an error for each field that is not in the list, if unknown fields are
  // mistakes.
  void finish();

 private:
  // Returns the value of the field that the document calls `name`; nullptr if it is absent or an
  // error was added.
  const Json* present(std::string_view name, std::string_view description, const FieldRules& rules);
  // Whether all fields so far could be read. A field that is missing or out of place because of a
  // condition does not count.
  bool clean() const { return errors_.size() == errors_before_ + misplaced_; }

  const Json& object_;
  const FieldPath& path_;
  FieldErrors& errors_;
  std::size_t errors_before_;
  std::size_t misplaced_ = 0;  // errors of fields that a condition asks for or forbids
  std::vector<std::string_view> known_;
};

template <class Struct>
requires std::is_class_v<Struct>
void read_value(const ReadContext& context, Struct& out) {
  if (!check_map(context)) return;
  FieldReader reader(context.value, context.path, context.errors);
  visit_fields(reader, out);
  reader.finish();
}

// Reads a document, or the part of one at `path`.
template <class Struct>
void read_struct(const Json& value, const FieldPath& path, Struct& out, FieldErrors& errors) {
  const FieldRules rules;
  read_value(ReadContext{value, path, rules, errors}, out);
}

}  // namespace fettle::api
