#include "kube/merge_patch.h"

namespace fettle::kube {

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
    if (member == nullptr) {
      target.set(key, Json());
      member = target.find(key);
    }
    merge_patch(*member, value);
  }
}

}  // namespace fettle::kube
