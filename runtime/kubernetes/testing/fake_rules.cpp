#include "runtime/kubernetes/testing/fake_rules.h"

#include "api/fields/field_error.h"
#include "api/testing/rulebook.h"
#include "kube/objects/json_path.h"
#include "kube/objects/resource.h"

namespace fettle::kubernetes {
namespace {

// Adds to `object` the members that only `whole` has. A list counts as one value.
void fill_in(Json& object, const Json& whole) {
  for (const auto& [key, value] : whole.as_object()) {
    Json* there = object.find(key);
    if (there == nullptr || there->is_null()) {
      object.set(key, value);
    } else if (there->is_object() && value.is_object()) {
      fill_in(*there, value);
    }
  }
}

}  // namespace

Result<Json> apply_rulebook(const Json& before, const Json& after) {
  const std::string kind = kube::text_at(after, {"kind"});
  if (kind != kube::kStudies.kind && kind != kube::kTrials.kind) return after;
  const auto errors = api::errors_of_write(before, after);
  if (!errors.empty()) return invalid(api::to_string(errors));
  if (!api::errors_of_write(Json(), after).empty()) return after;  // an old error that persists
  const Json whole = api::with_defaults(after);
  Json stored = after;
  if (Json* spec = stored.find("spec")) fill_in(*spec, *whole.find("spec"));
  return stored;
}

}  // namespace fettle::kubernetes
