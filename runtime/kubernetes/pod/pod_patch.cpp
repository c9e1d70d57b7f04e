#include "runtime/kubernetes/pod/pod_patch.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/study/pod_template.h"

namespace fettle::kubernetes {
namespace {

// The merge key of a list; "" = the list is replaced.
std::string_view key_of_list(std::string_view list) {
  if (list == "volumeMounts") return "mountPath";
  constexpr std::string_view kNamed[] = {"containers", "env", "volumes", "imagePullSecrets"};
  return std::find(std::begin(kNamed), std::end(kNamed), list) != std::end(kNamed) ? "name" : "";
}

Json* find_entry(Json& list, std::string_view key, const Json& entry) {
  const Json* const name = entry.find(key);
  for (Json& candidate : list.as_array()) {
    const Json* const other = candidate.find(key);
    if (name != nullptr && other != nullptr && *other == *name) return &candidate;
  }
  return nullptr;
}

// Only containers are merged; a variable or a volume is a union, so its entry is replaced.
void patch_list(Json& list, const Json& patch, std::string_view name) {
  for (const Json& entry : patch.as_array()) {
    Json* const there = find_entry(list, key_of_list(name), entry);
    if (there == nullptr) {
      list.push_back(entry);  // also an entry without the merge key
    } else if (name == "containers") {
      patch_pod(*there, entry);
    } else {
      *there = entry;
    }
  }
}

Status check_container(const Json& container) {
  const Json* const name = container.find("name");
  if (name != nullptr && *name == Json(api::kTrialContainer)) return success();
  return invalid(std::string("spec.containers: expected the container ") + api::kTrialContainer +
                 " alone");
}

}  // namespace

void patch_pod(Json& object, const Json& patch) {
  for (const auto& [name, value] : patch.as_object()) {
    Json* const there = object.find(name);
    if (value.is_null()) {
      object.erase(name);
    } else if (value.is_object()) {
      // Also if the field is absent, so that no null remains inside the value.
      Json merged = there != nullptr && there->is_object() ? *there : Json::object();
      patch_pod(merged, value);
      object.set(name, std::move(merged));
    } else if (there != nullptr && there->is_array() && value.is_array() &&
               !key_of_list(name).empty()) {
      patch_list(*there, value, name);
    } else {
      object.set(name, value);
    }
  }
}

Status check_pod_patch(const Json& patch) {
  if (!patch.is_object()) return invalid("expected a pod template, {\"spec\": ...}");
  for (const auto& [name, value] : patch.as_object()) {
    if (name != "metadata" && name != "spec") {
      return invalid("unknown field " + name + "; expected metadata and spec");
    }
    if (!value.is_object()) return invalid(name + ": expected a map");
  }
  const Json* const spec = patch.find("spec");
  const Json* const containers = spec == nullptr ? nullptr : spec->find("containers");
  if (containers == nullptr) return success();
  if (!containers->is_array()) return invalid("spec.containers: expected a list");
  for (const Json& container : containers->as_array()) FETTLE_TRY(check_container(container));
  return success();
}

}  // namespace fettle::kubernetes
