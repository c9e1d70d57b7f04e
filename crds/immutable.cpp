#include "crds/immutable.h"

#include <algorithm>

#include "crds/values.h"

namespace fettle::crds {
namespace {

class Immutability {
 public:
  Immutability(const std::function<bool(std::string_view)>& may_change, std::string_view message)
      : may_change_(may_change), message_(message) {}

  // Descends into schemas that hold fields which may change; one rule protects all others.
  // add_rule() adds a member to `object`, but its properties stay in place.
  void add(Json& object, const std::string& path) const {
    for (auto& [name, schema] : object.find("properties")->as_object()) {
      const std::string place = path + '.' + name;
      if (may_change_(place)) continue;
      if (!holds_what_may_change(schema, place)) {
        add_rule(object, {unchanged(object, name), message_, '.' + name, Reason::kForbidden});
      } else if (Json* items = schema.find("items")) {
        add(*items, place + "[0]");  // the first entry represents all
      } else {
        add(schema, place);
      }
    }
  }

 private:
  bool holds_what_may_change(const Json& schema, const std::string& path) const {
    if (const Json* items = schema.find("items"))
      return holds_what_may_change(*items, path + "[0]");
    const Json* properties = schema.find("properties");
    if (properties == nullptr) return false;
    const Json::Object& fields = properties->as_object();
    return std::ranges::any_of(fields, [&](const Json::Member& field) {
      const std::string place = path + '.' + field.first;
      return may_change_(place) || holds_what_may_change(field.second, place);
    });
  }

  static bool always_there(const Json& object, const std::string& name) {
    const Json* required = object.find("required");
    return object.find("properties")->find(name)->find("default") != nullptr ||
           (required != nullptr &&
            std::ranges::find(required->as_array(), Json(name)) != required->as_array().end());
  }

  static std::string unchanged(const Json& object, const std::string& name) {
    const std::string now = "self." + name;
    const std::string before = "oldSelf." + name;
    // Both ways, since the API server overlooks fields without a schema that only the left side
    // has.
    std::string same = now + " == " + before + " && " + before + " == " + now;
    if (always_there(object, name)) return same;
    return "has(" + now + ") == has(" + before + ") && (!has(" + now + ") || (" + same + "))";
  }

  const std::function<bool(std::string_view)>& may_change_;
  std::string message_;
};

}  // namespace

void add_immutability(Json& schema, const std::string& path,
                      const std::function<bool(std::string_view)>& may_change,
                      std::string_view message) {
  Immutability(may_change, message).add(schema, path);
}

}  // namespace fettle::crds
