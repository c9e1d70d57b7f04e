#include "base/merge_patch.h"

namespace fettle {

void merge_patch(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Json::object();
  for (const auto& [key, value] : patch.as_object()) {
    if (value.is_null()) {
      target.erase(key);
      continue;
    }
    Json* member = target.find(key);
    // Merges even if the member was missing: an object may hold nulls, which must not be added.
    if (member == nullptr) {
      target.set(key, Json());
      member = target.find(key);
    }
    merge_patch(*member, value);
  }
}

Json make_merge_patch(const Json& from, const Json& to) {
  Json patch = Json::object();
  for (const auto& [key, value] : to.as_object()) {
    const Json* before = from.find(key);
    if (before != nullptr && *before == value) continue;
    const bool both_maps = before != nullptr && before->is_object() && value.is_object();
    // A list is replaced as a whole.
    patch.set(key, both_maps ? make_merge_patch(*before, value) : value);
  }
  for (const auto& [key, value] : from.as_object()) {
    if (to.find(key) == nullptr) patch.set(key, nullptr);
  }
  return patch;
}

}  // namespace fettle
