// Schemas of single values: the types and bounds of a field (api/fields/field.h) in the OpenAPI v3
// of a CustomResourceDefinition, and in CEL if OpenAPI cannot express them. Pure functions; usable
// from any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/fields/field.h"
#include "base/json.h"

namespace fettle::crds {

// Reason of a refusal by the API server; it opens the message ("Required value: ...").
enum class Reason { kInvalid, kForbidden, kRequired };

// One entry of x-kubernetes-validations. The message gets the place of `field`, ".min"; "" = here.
struct Rule {
  std::string cel;
  std::string message;
  std::string field;
  Reason reason = Reason::kInvalid;
};

void add_rule(Json& schema, const Rule& rule);

Json boolean_schema(const api::FieldRules& rules);
Json whole_schema(const api::FieldRules& rules);
Json number_schema(const api::FieldRules& rules);
Json text_schema(const api::FieldRules& rules);
Json choice_schema(std::span<const std::string_view> choices);
// Json members: an object, or a scalar of any type.
Json any_schema(const api::FieldRules& rules);
Json list_schema(Json items, const api::FieldRules& rules);
Json map_schema(Json values, const api::FieldRules& rules);

// Returns a hint on the form of a field's values, for the person who writes one; "" for plain
// values.
std::string form_hint(const api::FieldRules& rules);

// "'a'", "['a', 'b']", "0.5", "3.0" as CEL writes them.
std::string cel_text(std::string_view text);
std::string cel_list(std::span<const std::string_view> texts);
std::string cel_number(double value, bool is_whole);

// "self.kernel >= 1 && self.kernel % 2 == 1": the bounds of a number as CEL.
std::string cel_bounds(const std::string& value, const api::FieldRules& rules, bool is_whole);

}  // namespace fettle::crds
