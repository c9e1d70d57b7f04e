// FieldSetter: writes one value into the field of a struct that a path names, by its field list
// (field.h): "training.learningRate", "model.layers[0].units". It refuses what reading a document
// with that value there would refuse, with the same message. Not synchronised.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/fields/field_reader.h"
#include "base/json.h"

namespace fettle::api {

// A path cut into its first segment and the rest: "layers[0].units" -> "layers", "[0].units".
struct PathHead {
  std::string_view name;
  std::string_view rest;
};
PathHead split_path(std::string_view path);

// "[12].units" -> 12, ".units". Absent unless an index in brackets comes first.
struct IndexHead {
  std::size_t index = 0;
  std::string_view rest;
};
std::optional<IndexHead> split_index(std::string_view path);

// A value to write, its path and rules, and the list that gets its errors.
struct SetContext {
  std::string_view rest;  // of the path; "" = here
  const Json& value;
  const FieldPath& path;  // of the field reached so far
  const FieldRules& rules;
  FieldErrors& errors;
};

// Add an error: the path ends at something that holds fields, or continues after a value.
void refuse_whole(const SetContext& context);
void refuse_deeper(const SetContext& context);
void refuse_index(const SetContext& context, std::size_t entries);

template <class T>
void set_value(const SetContext& context, T& out);

template <class T>
void set_value(const SetContext& context, std::optional<T>& out) {
  set_value(context, out ? *out : out.emplace());
}

template <class T>
void set_value(const SetContext& context, std::vector<T>& out) {
  const auto head = split_index(context.rest);
  if (!head || head->index >= out.size()) return refuse_index(context, out.size());
  const FieldPath path = context.path.item(head->index);
  set_value(SetContext{head->rest, context.value, path, context.rules, context.errors},
            out[head->index]);
}

class FieldSetter {
 public:
  FieldSetter(const SetContext& context, PathHead head) : context_(context), head_(head) {}

  template <class T>
  void field(std::string_view name, T& member, std::string_view /*description*/,
             const FieldRules& rules = {}) {
    if (!reaches(name, rules)) return;
    const FieldPath path = context_.path.member(name);
    set_value(SetContext{head_.rest, context_.value, path, rules, context_.errors}, member);
  }
  void constant(std::string_view /*name*/, std::string_view /*text*/) {}
  void ignored(std::string_view /*name*/) {}
  // Call last: adds an error if no field had the name.
  void finish();

 private:
  // Whether `name` is the next field of the path; adds an error if that field does not apply.
  bool reaches(std::string_view name, const FieldRules& rules);

  const SetContext& context_;
  PathHead head_;
  bool found_ = false;
  std::vector<std::string_view> known_;
};

template <class T>
concept HasFields = requires(FieldSetter& setter, T& value) {
  visit_fields(setter, value);
};

template <class T>
void set_value(const SetContext& context, T& out) {
  if constexpr (HasFields<T>) {
    if (context.rest.empty()) return refuse_whole(context);
    FieldSetter setter(context, split_path(context.rest));
    visit_fields(setter, out);
    setter.finish();
  } else {
    if (!context.rest.empty()) return refuse_deeper(context);
    read_value(ReadContext{context.value, context.path, context.rules, context.errors}, out);
  }
}

}  // namespace fettle::api
